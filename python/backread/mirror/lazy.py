"""A table of a snapshot as a lazy frame of polars, whose query says what is read."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import polars  # type: ignore[import-not-found, unused-ignore]
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["lazy_frame"]


def lazy_frame(cursor: DuckDBPyConnection, table: str) -> polars.LazyFrame:
    """Reads what a query needs, at each collect anew; one query may scan it at several places."""
    frame: polars.LazyFrame = cursor.table(table).pl(lazy=True)
    try:
        # What pl(lazy=True) makes its frame by; polars.defer would hold all that a scan reads.
        from duckdb.polars_io import duckdb_source
    except ImportError:
        return frame
    scanned = cast("DuckDBPyRelation", _Scanned(cursor, table))
    return duckdb_source(scanned, frame.collect_schema())


class _Scanned:
    """A relation whose every use is on a new cursor.

    A connection has one reader, and refuses a second one while that is open; polars scans side by
    side where a query has a table twice, and does not close what it leaves in the middle.
    """

    def __init__(self, cursor: DuckDBPyConnection, table: str) -> None:
        self._cursor = cursor
        self._table = table
        self._lock = Lock()

    def project(self, columns: str) -> DuckDBPyRelation:
        if not columns:
            raise ValueError(
                "polars asks for rows without any column, as a row index alone does, and DuckDB "
                "has none such; write x.to_polars().lazy() in place of x.scan_polars()"
            )
        return self._new().project(columns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._new(), name)

    def _new(self) -> DuckDBPyRelation:
        with self._lock:
            return self._cursor.cursor().table(self._table)
