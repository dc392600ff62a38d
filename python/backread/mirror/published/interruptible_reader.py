"""A snapshot reader whose queries can be interrupted from another thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Condition
from time import monotonic
from typing import TYPE_CHECKING

from backread.errors import MirrorError
from backread.mirror.published.snapshot_reader import OpenSnapshot, SnapshotReader
from backread.mirror.store.engine import load_duckdb

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SECONDS_TO_END = 10.0
"""How long `InterruptibleReader.close` waits, on a machine that is very busy."""

SECONDS_BETWEEN = 0.02
"""Interruptions are repeated, because one that comes between two queries has no effect."""

_call: ContextVar[object] = ContextVar("_call", default=None)


class InterruptibleReader(SnapshotReader):
    """Reads within calls, which another thread can end; thread-safe."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._cursors: dict[object, list[DuckDBPyConnection]] = {}
        """The cursors that each running call has opened."""
        self._changed = Condition()
        self._closed = False

    @contextmanager
    def call(self, call: object) -> Iterator[None]:
        """Cursors that this thread opens in the block belong to the call, any hashable object.

        Raises `MirrorError` after `close`.
        """
        with self._changed:
            if self._closed:
                raise MirrorError(f"the mirror in {self.folder} is no longer read: it was closed")
            self._cursors[call] = []
        token = _call.set(call)
        try:
            yield
        finally:
            _call.reset(token)
            with self._changed:
                # An error's traceback may hold them beyond the life of the interpreter.
                for cursor in self._cursors.pop(call):
                    cursor.close()
                self._changed.notify_all()

    def snapshot(self, *, restricted: bool = False) -> OpenSnapshot:
        """As `SnapshotReader.snapshot`."""
        opened = super().snapshot(restricted=restricted)
        with self._changed:
            if _call.get() in self._cursors:
                self._cursors[_call.get()].append(opened.cursor)
        return opened

    def interrupt(self, call: object) -> None:
        """Interrupts the queries of a call until it has ended."""
        with self._changed:
            while call in self._cursors:
                self._interrupt_and_wait([call])

    def close(self) -> None:
        """Ends all calls and gives up the connections.

        A query that outlives the interpreter would abort it.
        """
        ends = monotonic() + SECONDS_TO_END
        with self._changed:
            self._closed = True
            while self._cursors and monotonic() < ends:
                self._interrupt_and_wait(list(self._cursors))
        with self._lock:
            for held in self._open.values():
                if (opened := held.get()) is not None:
                    opened.cursor.close()
            self._open = {}

    def _interrupt_and_wait(self, calls: list[object]) -> None:
        closed = load_duckdb().ConnectionException
        for cursor in [cursor for call in calls for cursor in self._cursors[call]]:
            with suppress(closed):
                cursor.interrupt()
        self._changed.wait(SECONDS_BETWEEN)
