"""Reads the published snapshot, by an in-memory database with views over its files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from backread._backread import OfProcess
from backread.errors import MirrorError
from backread.mirror.published.manifest import Manifest, read_manifest
from backread.mirror.published.queries import restrictions
from backread.mirror.published.views import select_statements, view_statements
from backread.mirror.store.engine import check_path, connect, named_errors, rows_of, scan, timestamp
from backread.mirror.store.schema import CONTENT_TABLES, PROFILE

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


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
        seen = self.manifest.seen
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
