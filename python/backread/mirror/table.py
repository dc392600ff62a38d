"""`MirrorTable`: a table of the published snapshot in the hands of those that read Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

from backread._client.frames import (
    DtypeBackend,
    arrow_table,
    no_array,
    pandas_frame,
    polars_frame,
    refuse_misread,
    require,
)
from backread.mirror.engine import named_errors
from backread.mirror.lazy import lazy_frame

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from duckdb import DuckDBPyRelation

    from backread.mirror.mirror import Mirror
    from backread.mirror.snapshot import SnapshotReader

__all__ = ["MirrorTable", "TableName"]

TableName = Literal["users", "messages", "conversations", "lists", "rejects", "runs"]

SHOWN_ROWS = 5
"""So many rows stand for the table in a notebook."""


class MirrorTable:
    """One table of a mirror, as an Arrow stream with the columns that `Mirror.sql` gives.

    Whatever takes Arrow takes it as it is: ``polars.DataFrame(table)``, ``pyarrow.table(table)``,
    ``pandas.DataFrame.from_arrow(table)``, and DuckDB, arro3 and deltalake. Making one opens
    nothing. Each time it is read, it gives the snapshot that is then the newest, whole and
    without waiting for a sync; where two tables must be of one snapshot, join them in
    `Mirror.sql`. Rows marked as gone are in ``users`` and ``messages``, with a ``deleted_at``.

    Reading raises `MirrorError` where nothing is published yet or DuckDB is not installed.
    """

    __slots__ = ("__weakref__", "_mirror", "_name", "_reader")

    def __init__(self, mirror: Mirror, reader: SnapshotReader, name: TableName) -> None:
        if name not in get_args(TableName):
            *others, last = get_args(TableName)
            raise ValueError(
                f"a mirror has the tables {', '.join(others)} and {last}, not {name!r}"
            )
        self._mirror = mirror
        self._reader = reader
        self._name: TableName = name

    @property
    def name(self) -> TableName:
        """What it is called in `Mirror.sql`."""
        return self._name

    @property
    def columns(self) -> list[str]:
        """The names of its columns, in order; no row is read."""
        names: list[str] = self._relation().columns
        return names

    @property
    def num_rows(self) -> int:
        """How many rows the newest snapshot has; counted each time."""
        query = f"SELECT count(*) FROM {self._name}"
        rows: int = self._reader.rows(self._reader.cursor(), query, [])[0][0]
        return rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as columns, in bounded memory; each call gives a new stream.

        TypeError for ``polars.from_arrow(table)``, which would make one column of structs of it,
        and for ``polars.scan_arrow_c_stream(table)``, which would be empty at its second collect.
        """
        refuse_misread(self)
        relation = self._relation()
        with named_errors(self._mirror.folder):
            stream: object = relation.__arrow_c_stream__(requested_schema)
            return stream

    @property
    def __arrow_c_schema__(self) -> Callable[[], object]:
        """The schema of the stream; no row is read. It is there where pyarrow is."""
        try:
            pyarrow = require("pyarrow", "__arrow_c_schema__")
        except ImportError as error:
            # Those that ask for it do without where it is not there.
            raise AttributeError(str(error), name="__arrow_c_schema__", obj=self) from None

        def capsule() -> object:
            none = self._relation().limit(0)
            with named_errors(self._mirror.folder):
                schema = pyarrow.RecordBatchReader.from_stream(none).schema
            exported: object = schema.__arrow_c_schema__()
            return exported

        return capsule

    @property
    def __array__(self) -> Callable[..., NoReturn]:
        return no_array(self)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a MirrorTable is not read row by row; write x.to_arrow(), x.to_polars() or "
            f"x.to_pandas(), or for tuples mirror.sql('from {self._name}').fetchall()"
        )

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a ``pyarrow.Table``; ImportError where pyarrow is not installed."""
        return arrow_table(self)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a ``polars.DataFrame``; ImportError where polars is not installed."""
        return polars_frame(self)

    def scan_polars(self) -> polars.LazyFrame:
        """A ``polars.LazyFrame`` that reads the columns and rows that its query needs, each time.

        It keeps to the snapshot that is the newest now. The files of that snapshot stay for at
        least 15 minutes after a sync replaced them, so make a new one for each query of a program
        that runs for long. ImportError without polars and pyarrow.
        """
        require("polars", "scan_polars")
        require("pyarrow", "scan_polars")
        cursor = self._reader.cursor()
        with named_errors(self._mirror.folder):
            return lazy_frame(cursor, self._name)

    def to_pandas(self, *, dtype_backend: DtypeBackend = None) -> pandas.DataFrame:
        """All rows as a ``pandas.DataFrame``; ImportError without pandas and pyarrow.

        ``dtype_backend="pyarrow"`` keeps Arrow's types and memory (``pandas.ArrowDtype``). Without
        it, numbers and flags with nulls become floats and objects. ValueError for anything else.
        """
        return pandas_frame(self, dtype_backend)

    def _relation(self) -> DuckDBPyRelation:
        cursor = self._reader.cursor()
        with named_errors(self._mirror.folder):
            return cursor.table(self._name)

    def __repr__(self) -> str:
        return f"{self._mirror!r}.table({self._name!r})"

    def _repr_html_(self) -> str:
        from backread._display.records import mirror_table_html

        columns = self.columns
        # As text, because DuckDB gives a datetime only where pytz is installed.
        text = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in columns)
        query = f"SELECT {text} FROM {self._name} LIMIT {SHOWN_ROWS}"
        rows = self._reader.rows(self._reader.cursor(), query, [])
        return mirror_table_html(self._name, self.num_rows, columns, rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MirrorTable) and other._identity() == self._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __reduce__(self) -> tuple[Any, ...]:
        return _table_of, self._identity()

    def _identity(self) -> tuple[Mirror, TableName]:
        return self._mirror, self._name


def _table_of(mirror: Mirror, name: TableName) -> MirrorTable:
    return mirror.table(name)
