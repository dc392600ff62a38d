"""backread on Apache Spark (PySpark 4.0 or later): the data source ``backread``, landing, merging.

`register` makes ``spark.read.format("backread")`` and ``spark.readStream.format("backread")`` work
in a session; `land` reads the service into immutable Parquet files named by a manifest; `newest`
and `merge_into_delta` reduce landed runs to one row per key. PySpark is imported on first use and
installed by ``pip install "backread[spark]"``. `merge_into_delta` also needs
``backread[spark-delta]`` on the driver.
"""

from __future__ import annotations

from importlib import import_module

# As in backread/__init__.py.
TYPE_CHECKING = bool()  # noqa: UP018
if TYPE_CHECKING:
    from typing import Any

    from backread.integrations.spark.executors import check
    from backread.integrations.spark.landing_job import land
    from backread.integrations.spark.merging import merge_into_delta, newest
    from backread.integrations.spark.source import BackreadDataSource, register

__all__ = ["BackreadDataSource", "check", "land", "merge_into_delta", "newest", "register"]

_ELSEWHERE = {
    "BackreadDataSource": "source",
    "check": "executors",
    "land": "landing_job",
    "merge_into_delta": "merging",
    "newest": "merging",
    "register": "source",
}


# Not for type checkers, which would take it that any name is there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _ELSEWHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = import_module(f"{__name__}.{_ELSEWHERE[name]}")
        except ModuleNotFoundError as error:
            if error.name not in ("pyspark", "pyarrow"):
                raise
            raise ImportError(
                f"backread on Spark needs {error.name}, which is not installed; run: "
                'pip install "backread[spark]"',
                name=error.name,
            ) from None
        return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
