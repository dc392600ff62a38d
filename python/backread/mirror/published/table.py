"""`MirrorTable`: a table of the published snapshot as an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, get_args

from backread._display.words import amount, size
from backread._files.paths import shown
from backread._frames import require
from backread.errors import MirrorError
from backread.mirror.published.row_stream import LEAST_POLARS, RowStream
from backread.mirror.store.engine import named_errors

if TYPE_CHECKING:
    import polars  # type: ignore[import-not-found, unused-ignore]
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from backread.mirror.published.snapshot_reader import SnapshotReader

TableName = Literal["users", "messages", "conversations", "lists", "files", "rejects", "runs"]


class MirrorTable(RowStream):
    """One table of a mirror, as an Arrow stream with the same columns as in `Mirror.sql`.

    Arrow libraries accept it directly: ``polars.DataFrame(table)``, ``pyarrow.table(table)``,
    ``pandas.DataFrame.from_arrow(table)``, and DuckDB, arro3 and deltalake. Creating it opens
    nothing. Each read returns the snapshot that is newest at that time, without waiting for a sync;
    if two tables must be from the same snapshot, join them in `Mirror.sql`. ``users`` and
    ``messages`` include deleted rows, with a ``deleted_at``.

    Reading raises `MirrorError` if nothing is published yet or DuckDB is not installed.
    """

    def __init__(self, reader: SnapshotReader, name: TableName) -> None:
        if name not in get_args(TableName):
            raise unknown_table(name)
        self._reader = reader
        self._name: TableName = name
        self._caption = name

    @property
    def name(self) -> TableName:
        """The table's name in `Mirror.sql`."""
        return self._name

    @property
    def num_bytes(self) -> int | None:
        """The size of its Parquet files; None for ``conversations``, which has no files."""
        return self._reader.snapshot().bytes_of(self._name)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a MirrorTable cannot be iterated; use x.to_arrow(), x.to_polars() or "
            f"x.to_pandas(), or for tuples mirror.sql('from {self._name}').fetchall()"
        )

    def scan_polars(self) -> polars.LazyFrame:
        """A ``polars.LazyFrame`` that reads only the columns and rows that its query needs.

        It stays on the snapshot that is newest now, whose files remain for at least 15 minutes
        after a sync replaces them; in a long-running program, create a new frame for each query.
        Raises ImportError without pyarrow and polars 1.33 or later.
        """
        require("polars", "scan_polars", LEAST_POLARS)
        require("pyarrow", "scan_polars")
        cursor = self._reader.cursor()
        with named_errors(self._reader.folder):
            return lazy_frame(cursor, self._name)

    def _opened(self) -> tuple[DuckDBPyConnection, str]:
        return self._reader.cursor(), f"FROM {self._name}"

    def __repr__(self) -> str:
        return f"Mirror({shown(self._reader.folder)!r}).table({self._name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MirrorTable) and other._identity() == self._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Path, TableName]:
        return self._reader.folder, self._name


class MirrorTables(Mapping[TableName, MirrorTable]):
    """The tables of a mirror by name; ``print`` shows the rows, size and columns of each.

    Creating it opens nothing.
    """

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader

    def __getitem__(self, name: TableName) -> MirrorTable:
        if name not in get_args(TableName):
            raise KeyError(name)
        return MirrorTable(self._reader, name)

    def __iter__(self) -> Iterator[TableName]:
        return iter(get_args(TableName))

    def __len__(self) -> int:
        return len(get_args(TableName))

    def __repr__(self) -> str:
        try:
            lines = [
                f"{name:13} {amount(table.num_rows, 'row'):>18} "
                f"{'' if table.num_bytes is None else size(table.num_bytes):>9}  "
                f"{', '.join(table.columns)}"
                for name, table in self.items()
            ]
        except MirrorError as error:
            return f"<tables of {shown(self._reader.folder)!r}: {error}>"
        return "\n".join(lines)


def unknown_table(name: object) -> ValueError:
    """The error for a name that is no `TableName`."""
    *others, last = get_args(TableName)
    return ValueError(
        f"a mirror has the tables {', '.join(others)} and {last}, not {name!r} "
        "(forgotten and profile: only in SQL)"
    )


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

    def __getattr__(self, name: str) -> Any:
        return getattr(self._new(), name)

    def _new(self) -> DuckDBPyRelation:
        with self._lock:
            return self._cursor.cursor().table(self._table)
