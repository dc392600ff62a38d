"""One export while it runs: what is written where, and how far it has come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any

from backread.mirror.export.cells import Column
from backread.mirror.export.report import ExportProgress
from backread.mirror.store.engine import rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Job", "TableQuery", "run_beside"]

ROWS_PER_BATCH = 5_000
SECONDS_BETWEEN = 0.2
"""The interval between reports of progress, and how long Ctrl-C may take to be noticed."""

SETTINGS = (
    # DuckDB estimates its progress only with a bar.
    "enable_progress_bar = true",
    "enable_progress_bar_print = false",
    # Otherwise COPY buffers rows to write them in order: 900 MB for 1,000,000 messages.
    "preserve_insertion_order = false",
)
"""Of the export's own session."""


@dataclass(frozen=True, slots=True)
class TableQuery:
    """One table of an export: its rows as a query over the snapshot."""

    name: str
    query: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns that identify a row, if there are any."""
    rows: int
    is_sorted: bool = False
    """Whether the rows are to be written in the order of the query."""


class _StoppedError(Exception):
    """The caller has stopped the export."""


class Job:
    """Passed to the writer of a format, which runs in a separate thread."""

    def __init__(
        self, cursor: DuckDBPyConnection, tables: tuple[TableQuery, ...], folder: Path
    ) -> None:
        self.cursor = cursor
        self.tables = tables
        self.folder = folder
        """Where files are written; private, and removed unless the export completes."""
        self.guarded_cells = self.cut_cells = self.replaced_cells = 0
        self._stopping = Event()
        self._connections = [cursor]
        self._began = monotonic()
        self._table: TableQuery | None = None
        self._rows_before = self._rows = 0
        self._copying = False

    def begin(self, table: TableQuery) -> None:
        """Starts a table; the one before it is complete."""
        self.check()
        if self._table is not None:
            self._rows_before += self._table.rows
        self._table, self._rows = table, 0

    def check(self) -> None:
        """Raises an exception if the export was stopped; called now and then by the writer."""
        if self._stopping.is_set():
            raise _StoppedError

    def execute(self, statement: str) -> None:
        """Runs a statement that writes the table's rows."""
        self.check()
        self._copying = True
        try:
            self.cursor.execute(statement).fetchall()
        finally:
            self._copying = False
        self.check()

    @contextmanager
    def interrupting(self, connection: DuckDBPyConnection) -> Iterator[None]:
        """Also interrupts this connection if the export is stopped in the block."""
        self.check()
        self._connections = [self.cursor, connection]
        try:
            yield
        finally:
            self._connections = [self.cursor]

    def batches(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query in batches, none of them empty."""
        self.check()
        result = self.cursor.execute(query)
        while rows := result.fetchmany(ROWS_PER_BATCH):
            yield rows
            self._rows += len(rows)
            self.check()

    def stop(self) -> None:
        """Makes the writer end soon with an exception; called in another thread, repeatedly."""
        self._stopping.set()
        for connection in self._connections:
            connection.interrupt()

    def progress(self) -> ExportProgress:
        """How far the writer has come; called in another thread."""
        total = sum(table.rows for table in self.tables)
        rows = self._rows
        if self._copying and self._table is not None:
            share = max(0.0, self.cursor.query_progress()) / 100
            rows = max(rows, int(self._table.rows * min(1.0, share)))
        return ExportProgress(
            table="" if self._table is None else self._table.name,
            rows=min(total, self._rows_before + rows),
            rows_total=total,
            bytes=_bytes_below(self.folder),
            seconds=monotonic() - self._began,
        )


def run_beside(
    job: Job, write: Callable[[Job], None], tell: Callable[[ExportProgress], object] | None
) -> None:
    """Runs the writer in a separate thread, and calls ``tell`` in this one.

    In this thread, libraries would delay Ctrl-C until the file is complete.
    """
    for setting in SETTINGS:
        rows_of(job.cursor, f"SET SESSION {setting}")
    with ThreadPoolExecutor(1, "backread-export") as pool:
        writing = pool.submit(write, job)
        try:
            # With a timeout, because Ctrl-C does not end a wait on Windows.
            while not wait([writing], SECONDS_BETWEEN).done:
                if tell is not None:
                    tell(job.progress())
        except BaseException:
            # An interruption between two statements has no effect.
            while not wait([writing], SECONDS_BETWEEN).done:
                job.stop()
            raise
    writing.result()
    # A short export is over before it was first asked.
    if tell is not None:
        tell(job.progress())


def _bytes_below(folder: Path) -> int:
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(directory, name)).st_size  # noqa: PTH116, PTH118
            except OSError:
                continue
    return total
