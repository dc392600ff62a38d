"""Reads the published snapshot, by an in-memory database with views over its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from backread._backread import OfProcess
from backread.errors import MirrorError
from backread.mirror.published.manifest import Manifest, read_manifest
from backread.mirror.published.queries import restrictions
from backread.mirror.published.views import select_statements, view_statements
from backread.mirror.store.engine import (
    check_path,
    connect,
    load_duckdb,
    named_errors,
    rows_of,
    scan,
    timestamp,
)
from backread.mirror.store.schema import CONTENT_TABLES, PROFILE

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SECONDS_TO_END = 10.0
"""How long `InterruptibleReader.close` waits, on a machine that is very busy."""

SECONDS_BETWEEN = 0.02
"""Interruptions are repeated, because one that comes between two queries has no effect."""

_call: ContextVar[object] = ContextVar("_call", default=None)


@dataclass(frozen=True, slots=True)
class OpenSnapshot:
    """A cursor over a snapshot, and what its tables are made of."""

    manifest: Manifest
    cursor: DuckDBPyConnection
    mirror: Path
    sources: dict[str, str]

    def rows(self, statement: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with named_errors(self.mirror):
            return rows_of(self.cursor, statement, values)

    def bytes_of(self, table: str) -> int | None:
        """The size of the table's files; None if it has none."""
        files = self.manifest.tables.get(table)
        return None if files is None else sum(each.bytes for each in files)

    def statements(self) -> list[str]:
        """The statements that create the views."""
        return view_statements(self.sources, self._seen())

    def of_user(self, user_id: int) -> dict[str, str]:
        """The queries of ``users`` and ``messages`` for one user: only files that may have it."""
        sources = dict(self.sources)
        for table in CONTENT_TABLES:
            folder = self.manifest.folder(self.mirror) / table.name
            files = self.manifest.tables[table.name]
            sources[table.name] = scan(folder / each.name for each in files if each.holds(user_id))
        return select_statements(sources, self._seen())

    def _seen(self) -> str:
        seen = self.manifest.seen_at
        return "CAST(NULL AS TIMESTAMPTZ)" if seen is None else timestamp(seen)


class SnapshotReader:
    """Opens connections to the newest snapshot; never opens ``mirror.duckdb`` and never waits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()
        # Keyed by whether the connection is restricted. DuckDB's threads do not survive a fork, and
        # freeing such a connection in the child would crash it.
        self._open: dict[bool, OfProcess[OpenSnapshot]] = {}

    def __reduce__(self) -> tuple[type[SnapshotReader], tuple[Path]]:
        return type(self), (self.folder,)

    def cursor(self, *, restricted: bool = False) -> DuckDBPyConnection:
        """A cursor over the newest snapshot; earlier cursors stay on theirs.

        A ``restricted`` one opens no other files. Raises `MirrorError` if nothing is published yet.
        """
        return self.snapshot(restricted=restricted).cursor

    def snapshot(self, *, restricted: bool = False) -> OpenSnapshot:
        """The newest snapshot with a new cursor; as `cursor`."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            raise nothing_published(self.folder)
        with self._lock:
            held = self._open.get(restricted)
            opened = None if held is None else held.get()
            if opened is None or opened.manifest != manifest:
                opened = self._connect_newest(manifest, restricted)
                self._open[restricted] = OfProcess(opened)
            return replace(opened, cursor=opened.cursor.cursor())

    def _connect_newest(self, manifest: Manifest, restricted: bool) -> OpenSnapshot:
        while True:
            try:
                return self._connect(manifest, restricted)
            except MirrorError:
                # A publication may have removed it, at once if a user was forgotten.
                newest = read_manifest(self.folder)
                if newest is None or newest == manifest:
                    raise
                manifest = newest

    def _connect(self, manifest: Manifest, restricted: bool) -> OpenSnapshot:
        check_path(self.folder)
        with named_errors(self.folder):
            connection = connect(None)
            manifest.check_files(self.folder)
            # Exactly these files, whatever else is in the folder.
            paths = manifest.paths(self.folder)
            sources = {name: scan(files) for name, files in paths.items()}
            opened = OpenSnapshot(manifest, connection, self.folder, sources)
            statements = opened.statements()
            if restricted:
                statements = [*statements, *restrictions(manifest.folder(self.folder))]
            for statement in statements:
                rows_of(connection, statement)
            return opened

    def profile(self) -> str | None:
        """The service's profile as JSON, None if none is published."""
        if read_manifest(self.folder) is None:
            return None
        found = self.snapshot().rows(f"SELECT {PROFILE} FROM {PROFILE}")
        return found[0][0] if found else None


def nothing_published(folder: Path) -> MirrorError:
    """The error for a folder without a snapshot."""
    if folder.exists() and not folder.is_dir():
        return MirrorError(f"{folder} is a file, but a mirror is a folder; check the name")
    why = (
        f": run Mirror.sync or `backread sync {folder}` first"
        if folder.exists()
        else ", which does not exist; check the name, or sync first"
    )
    return MirrorError(f"nothing is published in {folder}{why}")


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
