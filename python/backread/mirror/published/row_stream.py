"""`RowStream`: rows of a snapshot as an Arrow stream, the base of `MirrorTable` and `Changes`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from backread._frames import (
    DtypeBackend,
    arrow_table,
    no_array,
    one_shot,
    pandas_frame,
    polars_frame,
    require,
)
from backread.mirror.published.conversation import attributes_of
from backread.mirror.store.engine import (
    from_microseconds,
    named_errors,
    rows_of,
    stream_errors,
    stream_of,
)

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from backread.mirror.published.snapshot_reader import SnapshotReader

LEAST_POLARS = "1.33"
"""Earlier versions have no lazy scans as DuckDB makes them, and fail on columns of maps."""

SHOWN_ROWS = 5
"""The number of rows shown in a notebook."""

TIME = "TIMESTAMP WITH TIME ZONE"
ATTRIBUTES = "user_attributes"


class RowStream:
    """What Arrow libraries accept directly; subclasses say which rows, and of which mirror."""

    _reader: SnapshotReader
    _caption: str
    """What a notebook calls the rows."""

    @property
    def _folder(self) -> Path:
        return self._reader.folder

    def _opened(self) -> tuple[DuckDBPyConnection, str]:
        """A new cursor over the snapshot, and the query for the rows."""
        raise NotImplementedError

    def _relation(self) -> DuckDBPyRelation:
        cursor, query = self._opened()
        with named_errors(self._folder):
            return cursor.sql(query)

    @property
    def columns(self) -> list[str]:
        """The column names, in order; reads no rows."""
        names: list[str] = self._relation().columns
        return names

    @property
    def num_rows(self) -> int:
        """The number of rows; counted each time."""
        cursor, query = self._opened()
        with named_errors(self._folder):
            [(rows,)] = rows_of(cursor, f"SELECT count(*) FROM ({query})")
        return int(rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as columns, in bounded memory; each call gives a new stream, to be read once."""
        cursor, query = self._opened()
        with named_errors(self._folder):
            return one_shot(stream_of(cursor, query, requested_schema))

    @property
    def __arrow_c_schema__(self) -> Callable[[], object]:
        """The schema of the stream; reads no rows. Only available with pyarrow."""
        try:
            pyarrow = require("pyarrow", "__arrow_c_schema__")
        except ImportError as error:
            # Callers look for the attribute and do without it.
            raise AttributeError(str(error), name="__arrow_c_schema__", obj=self) from None

        def capsule() -> object:
            none = self._relation().limit(0)
            with named_errors(self._folder):
                schema = pyarrow.RecordBatchReader.from_stream(none).schema
            exported: object = schema.__arrow_c_schema__()
            return exported

        return capsule

    @property
    def __array__(self) -> Callable[..., NoReturn]:
        return no_array(self)

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a ``pyarrow.Table``; ImportError if pyarrow is not installed."""
        with stream_errors(self._folder):
            return arrow_table(self)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a ``polars.DataFrame``; ImportError without polars 1.33 or later."""
        require("polars", "to_polars", LEAST_POLARS)
        with stream_errors(self._folder):
            return polars_frame(self)

    def to_pandas(self, *, dtype_backend: DtypeBackend = None) -> pandas.DataFrame:
        """All rows as a ``pandas.DataFrame``; ImportError without pandas and pyarrow.

        ``dtype_backend="pyarrow"`` keeps Arrow's types and memory (``pandas.ArrowDtype``). Without
        it, numbers and flags with nulls become floats and objects. ValueError for anything else.
        """
        with stream_errors(self._folder):
            return pandas_frame(self, dtype_backend)

    def _repr_html_(self) -> str:
        from backread._display.html import grid, quiet, safe, sender_first
        from backread._display.words import amount

        relation = self._relation()
        columns = list(zip(relation.columns, map(str, relation.types), strict=True))
        cursor, query = self._opened()
        chosen = ", ".join(_shown(*each) for each in columns)
        shown = f"SELECT {chosen} FROM ({query}) LIMIT {SHOWN_ROWS}"
        with named_errors(self._folder):
            rows = rows_of(cursor, shown)
        records = [
            {
                name: _read(name, kind, value)
                for (name, kind), value in zip(columns, row, strict=True)
            }
            for row in rows
        ]
        sizes = f"{amount(self.num_rows, 'row')}, {amount(len(columns), 'column')}; times are UTC"
        caption = f"{safe(self._caption)} {quiet(sizes)}"
        names = sender_first(relation.columns)
        return grid(caption, "first rows of the table", names, records)


def _shown(name: str, kind: str) -> str:
    """The expression of a column whose values are shown; other types as DuckDB's text."""
    if kind == TIME:
        # DuckDB needs a time zone database to return datetimes.
        return f'epoch_us("{name}")'
    as_is = kind in ("BIGINT", "BOOLEAN") or kind.startswith("MAP") or name == ATTRIBUTES
    return f'"{name}"' if as_is else f'CAST("{name}" AS VARCHAR)'


def _read(name: str, kind: str, value: Any) -> Any:
    if kind == TIME:
        return from_microseconds(value)
    return attributes_of(value) if name == ATTRIBUTES else value
