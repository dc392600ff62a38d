"""One export while it runs, how far it has come, and what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from backread._files.dataclass_json import ShortRepr
from backread._interruptible import run_interruptibly
from backread.mirror.export.cells import Column
from backread.mirror.store.engine import Rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ExportFormat: TypeAlias = Literal["parquet", "csv", "jsonl", "xlsx", "sqlite", "duckdb"]
"""What `Mirror.export` writes."""

Codec: TypeAlias = Literal["zstd", "snappy", "gzip", "uncompressed"]
"""How the pages of Parquet files are compressed."""


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """The progress of an export: ``rows`` of ``rows_total``, and the table that is written now.

    ``rows`` is estimated while DuckDB writes a table. ``bytes`` have been written,
    in ``seconds``.
    """

    table: str
    rows: int
    rows_total: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class ExportReport(ShortRepr):
    """What one export wrote.

    - ``target`` is the file or folder, ``files`` are the files in it, or the file itself, and
      ``format`` is theirs.
    - ``rows`` has the number of rows of each table. ``bytes`` is the size of the files, and
      ``seconds`` the time it took.
    - ``guarded_cells`` (CSV) begin with an apostrophe, so that no spreadsheet takes them for a
      formula.
    - ``cut_cells`` (XLSX) were longer than the 32,767 characters of a cell, and end there.
      ``replaced_cells`` (XLSX) have U+FFFD in place of control characters, which it cannot hold.
    """

    target: Path
    format: ExportFormat | Literal["json"]
    rows: Mapping[str, int]
    files: tuple[Path, ...]
    bytes: int
    seconds: float
    guarded_cells: int = 0
    cut_cells: int = 0
    replaced_cells: int = 0

    _in_repr = ("format", "bytes", "seconds", "target")


Result = TypeVar("Result")
Tell = Callable[[ExportProgress], object]

ROWS_PER_BATCH = 5_000
SECONDS_BETWEEN = 0.2
"""The least interval between reports of progress."""


@dataclass(frozen=True, slots=True)
class TableQuery:
    """One table of an export: its rows as a query over the snapshot."""

    name: str
    query: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    """The columns that identify a row, if there are any."""
    rows: int = 0
    is_sorted: bool = True
    """Whether the query has an order."""

    @classmethod
    def over(
        cls, rows: Rows, name: str, source: str, order: str = "", key: tuple[str, ...] = ()
    ) -> TableQuery:
        """The table of the rows of ``source``, a FROM clause; counts them."""
        columns = tuple((each[0], each[1]) for each in rows(f"DESCRIBE SELECT * {source}"))
        [(count,)] = rows(f"SELECT count(*) {source}")
        query = f"SELECT * {source}{f' ORDER BY {order}' if order else ''}"
        return cls(name, query, columns, key, count, bool(order))


class Job:
    """Passed to the writer of a format. Runs its statements, and reports its progress."""

    def __init__(
        self,
        cursor: DuckDBPyConnection,
        tables: tuple[TableQuery, ...],
        folder: Path,
        tell: Tell | None = None,
    ) -> None:
        self.cursor = cursor
        self.tables = tables
        self.folder = folder
        """Where files are written; private, and removed unless the export completes."""
        self.guarded_cells = self.cut_cells = self.replaced_cells = 0
        self._tell = tell
        self._began = self._told = monotonic()
        self._table: TableQuery | None = None
        self._rows_before = self._rows = 0
        self._is_copying = False

    def begin_tables(self) -> Iterator[TableQuery]:
        """The tables in turn; when the next one is requested, the one before it is complete."""
        for table in self.tables:
            self._table, self._rows = table, 0
            yield table
            self._rows_before, self._rows = self._rows_before + table.rows, 0

    def run(
        self, work: Callable[[], Result], interrupt: Callable[[], object] | None = None
    ) -> Result:
        """Runs the work, by default on the snapshot's cursor, and reports progress meanwhile."""
        return run_interruptibly(work, interrupt or self.cursor.interrupt, self.report)

    def execute(
        self, statement: str, cursor: DuckDBPyConnection | None = None
    ) -> list[tuple[Any, ...]]:
        """Runs a statement, by default over the snapshot, and returns its rows."""
        used = cursor or self.cursor
        return self.run(lambda: used.execute(statement).fetchall(), used.interrupt)

    def copy(self, statement: str, table: TableQuery) -> None:
        """Runs a statement that writes all rows of the table."""
        self._is_copying = True
        self.execute(statement)
        self._is_copying, self._rows = False, table.rows

    def batches(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query in batches, none of them empty."""
        self.run(partial(self.cursor.execute, query))
        fetch = partial(self.cursor.fetchmany, ROWS_PER_BATCH)
        while rows := self.run(fetch):
            yield rows
            self._rows += len(rows)
            self.report()

    def count_cells(self, table: TableQuery, conditions: list[str]) -> int:
        """The number of the table's cells for which a condition holds."""
        if not conditions:
            return 0
        counted = " + ".join(f"count(*) FILTER ({each})" for each in conditions)
        [(cells,)] = self.execute(f"SELECT {counted} FROM ({table.query})")
        return int(cells)

    def report(self, *, at_end: bool = False) -> None:
        """Reports the progress, unless it was just reported."""
        now = monotonic()
        if self._tell is None or (now - self._told < SECONDS_BETWEEN and not at_end):
            return
        self._told = now
        total = sum(table.rows for table in self.tables)
        rows = self._rows_before + self._rows
        if self._is_copying and self._table is not None:
            # DuckDB's estimate is below 0 while it has none.
            share = min(100.0, max(0.0, self.cursor.query_progress())) / 100
            rows += int(self._table.rows * share)
        self._tell(
            ExportProgress(
                table="" if self._table is None else self._table.name,
                rows=min(total, rows),
                rows_total=total,
                bytes=sum(map(_size, self.folder.iterdir())),
                seconds=now - self._began,
            )
        )


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # a temporary one that is gone
