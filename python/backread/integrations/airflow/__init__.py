"""backread in Apache Airflow: a connection type, a hook, operators, a sensor.

Layers, each of which imports only those before it::

    values, failures, new_messages_query, intervals <- connection, checks, full_runs, provider_info
        (nothing of Airflow's)
    names, links, lineage <- assets, hook <- reading, trigger <- sync, shards, sensor

Importing Airflow takes more than a second, and Airflow reads `provider_info` in every process that
it starts, so names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module

# As in backread/__init__.py.
TYPE_CHECKING = bool()  # noqa: UP018
if TYPE_CHECKING:
    from typing import Any

    from backread.integrations.airflow.assets import folder_asset
    from backread.integrations.airflow.hook import BackreadHook
    from backread.integrations.airflow.sensor import NewMessagesSensor
    from backread.integrations.airflow.shards import (
        BackreadCommitOperator,
        BackreadPlanOperator,
        BackreadShardOperator,
    )
    from backread.integrations.airflow.sync import BackreadSyncOperator
    from backread.integrations.airflow.trigger import NewMessagesTrigger

__all__ = [
    "BackreadCommitOperator",
    "BackreadHook",
    "BackreadPlanOperator",
    "BackreadShardOperator",
    "BackreadSyncOperator",
    "NewMessagesSensor",
    "NewMessagesTrigger",
    "folder_asset",
]

_MODULES = {
    "BackreadCommitOperator": "shards",
    "BackreadHook": "hook",
    "BackreadPlanOperator": "shards",
    "BackreadShardOperator": "shards",
    "BackreadSyncOperator": "sync",
    "NewMessagesSensor": "sensor",
    "NewMessagesTrigger": "trigger",
    "folder_asset": "assets",
}


# Not for type checkers, which would take it that any name is there.
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
                f"{name} needs Airflow, which is not installed; run: "
                'pip install "backread[airflow]"',
                name="airflow",
            ) from None
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
