"""A table of a snapshot as a polars LazyFrame, with projection and filter pushdown."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import polars  # type: ignore[import-not-found, unused-ignore]
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["lazy_frame"]


def lazy_frame(cursor: DuckDBPyConnection, table: str) -> polars.LazyFrame:
    """A frame that reads at each collect; a query may scan it several times."""
    frame: polars.LazyFrame = cursor.table(table).pl(lazy=True)
    try:
        # The function behind pl(lazy=True); polars.defer would hold a whole scan in memory.
        from duckdb.polars_io import duckdb_source
    except ImportError:
        return frame
    scanned = cast("DuckDBPyRelation", _Scanned(cursor, table))
    return duckdb_source(scanned, frame.collect_schema())


class _Scanned:
    """A relation that uses a new cursor each time.

    A connection allows one open reader; polars scans concurrently if a query uses a table twice,
    and does not close readers that it abandons.
    """

    def __init__(self, cursor: DuckDBPyConnection, table: str) -> None:
        self._cursor = cursor
        self._table = table
        self._lock = Lock()

    def project(self, columns: str) -> DuckDBPyRelation:
        if not columns:
            raise ValueError(
                "this query needs no column, as a row index alone does, and DuckDB cannot scan "
                "without one; use x.to_polars().lazy() instead of x.scan_polars()"
            )
        return self._new().project(columns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._new(), name)

    def _new(self) -> DuckDBPyRelation:
        with self._lock:
            return self._cursor.cursor().table(self._table)
