"""A snapshot reader whose queries can be interrupted from another thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from backread.mirror.published.snapshot_reader import OpenSnapshot, SnapshotReader
from backread.mirror.store.engine import load_duckdb

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["InterruptibleReader"]

_caller: ContextVar[object] = ContextVar("_caller", default=None)


class InterruptibleReader(SnapshotReader):
    """Remembers the cursors that are in use."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # With the caller that opened each.
        self._cursors: WeakKeyDictionary[DuckDBPyConnection, object] = WeakKeyDictionary()
        self._cursors_lock = Lock()

    @contextmanager
    def opened_by(self, caller: object) -> Iterator[None]:
        """Cursors that this thread opens in the block are the caller's, for `interrupt`."""
        token = _caller.set(caller)
        try:
            yield
        finally:
            _caller.reset(token)

    def snapshot(self, *, restricted: bool = False) -> OpenSnapshot:
        """As `SnapshotReader.snapshot`."""
        opened = super().snapshot(restricted=restricted)
        with self._cursors_lock:
            self._cursors[opened.cursor] = _caller.get()
        return opened

    def interrupt(self, caller: object = None) -> None:
        """Interrupts all running queries, or only those of a caller."""
        closed = load_duckdb().ConnectionException
        with self._cursors_lock:
            for cursor, opened_by in list(self._cursors.items()):
                if caller is None or opened_by is caller:
                    # A closed one may be held by the traceback of an error.
                    with suppress(closed):
                        cursor.interrupt()

    def close(self) -> None:
        """Gives up the connections: DuckDB complains of those that outlive the interpreter."""
        self.interrupt()
        with self._lock:
            self._open = {}
