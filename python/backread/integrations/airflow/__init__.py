"""backread in Apache Airflow: a connection type, a hook, operators.

Layers, each of which imports only those before it::

    connection, arguments, runs, provider_info (without Airflow) <- hook
        <- base_operators <- sync, shards

Importing Airflow takes more than a second, and Airflow reads `provider_info` in every process that
it starts, so names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module

# As in backread/__init__.py.
TYPE_CHECKING = bool()  # noqa: UP018
if TYPE_CHECKING:
    from typing import Any

    from backread.integrations.airflow.base_operators import folder_asset
    from backread.integrations.airflow.hook import BackreadHook
    from backread.integrations.airflow.shards import (
        BackreadCommitOperator,
        BackreadPlanOperator,
        BackreadShardOperator,
    )
    from backread.integrations.airflow.sync import BackreadSyncOperator

__all__ = [
    "BackreadCommitOperator",
    "BackreadHook",
    "BackreadPlanOperator",
    "BackreadShardOperator",
    "BackreadSyncOperator",
    "folder_asset",
]

_MODULES = {
    "BackreadCommitOperator": "shards",
    "BackreadHook": "hook",
    "BackreadPlanOperator": "shards",
    "BackreadShardOperator": "shards",
    "BackreadSyncOperator": "sync",
    "folder_asset": "base_operators",
}


# Not for type checkers, which would accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "airflow":
                raise
            raise ImportError(
                f'{name} needs Airflow 3.2 or later: {error}; run: pip install "backread[airflow]"',
                name="airflow",
            ) from None
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
