"""A table of a snapshot as a lazy frame of polars, whose query says what is read."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import polars  # type: ignore[import-not-found, unused-ignore]
    from duckdb import DuckDBPyConnection, DuckDBPyRelation, Expression
    from pyarrow import RecordBatchReader  # type: ignore[import-not-found, import-untyped, unused-ignore]

__all__ = ["lazy_frame"]


def lazy_frame(cursor: DuckDBPyConnection, table: str) -> polars.LazyFrame:
    """Reads what a query needs, at each collect anew; one query may scan it at several places."""
    from duckdb.polars_io import duckdb_source

    schema = cursor.table(table).pl(lazy=True).collect_schema()
    relation = cast("DuckDBPyRelation", _Scanned(cursor, table))
    frame: polars.LazyFrame = duckdb_source(relation, schema)
    return frame


class _Scanned:
    """The part of a relation that DuckDB's source for polars uses, on a new cursor at each use.

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

    def limit(self, rows: int) -> DuckDBPyRelation:
        return self._new().limit(rows)

    def filter(self, predicate: Expression) -> DuckDBPyRelation:
        return self._new().filter(predicate)

    def to_arrow_reader(self, *batch_size: int) -> RecordBatchReader:
        return self._new().to_arrow_reader(*batch_size)

    def _new(self) -> DuckDBPyRelation:
        with self._lock:
            return self._cursor.cursor().table(self._table)
