"""`RowStream`: rows of a snapshot as an Arrow stream, the base of `MirrorTable` and `Changes`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from backread._frames import (
    DtypeBackend,
    arrow_table,
    no_array,
    one_shot,
    pandas_frame,
    polars_frame,
    require,
)
from backread.mirror.store.engine import named_errors, stream_errors, stream_of

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

__all__ = ["LEAST_POLARS", "RowStream"]

LEAST_POLARS = "1.33"
"""Earlier versions have no lazy scans as DuckDB makes them, and fail on columns of maps."""


class RowStream:
    """What Arrow libraries accept directly; subclasses say which rows, and of which mirror."""

    __slots__ = ()

    @property
    def _folder(self) -> Path:
        raise NotImplementedError

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
