"""A snapshot reader whose queries can be interrupted from another thread."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

from backread.mirror.snapshot_reader import OpenSnapshot, SnapshotReader

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["InterruptibleReader"]


class InterruptibleReader(SnapshotReader):
    """Remembers the cursors that are in use."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._cursors: WeakSet[DuckDBPyConnection] = WeakSet()
        self._cursors_lock = Lock()

    def snapshot(self, *, restricted: bool = False) -> OpenSnapshot:
        """As `SnapshotReader.snapshot`."""
        opened = super().snapshot(restricted=restricted)
        with self._cursors_lock:
            self._cursors.add(opened.cursor)
        return opened

    def interrupt(self) -> None:
        """Interrupts all running queries."""
        with self._cursors_lock:
            for cursor in list(self._cursors):
                cursor.interrupt()

    def close(self) -> None:
        """Gives up the connections: DuckDB complains of those that outlive the interpreter."""
        self.interrupt()
        with self._lock:
            self._open = {}
