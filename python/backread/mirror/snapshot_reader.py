"""Reads the published snapshot, by an in-memory database with views over its files."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from backread.errors import MirrorError
from backread.mirror.engine import connect, named_errors, rows_of
from backread.mirror.manifest import PUBLISHED, Manifest, read_manifest
from backread.mirror.queries import restrictions
from backread.mirror.schema import PROFILE
from backread.mirror.views import view_statements

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["SnapshotReader"]

# DuckDB's threads do not survive a fork, so closing such a connection in the child would hang.
_left_by_fork: list[object] = []


class SnapshotReader:
    """Opens connections to the newest snapshot; never opens ``mirror.duckdb`` and never waits."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._pid = os.getpid()
        # Keyed by whether the connection is restricted.
        self._open: dict[bool, tuple[Manifest, DuckDBPyConnection]] = {}

    def cursor(self, *, restricted: bool = False) -> DuckDBPyConnection:
        """A cursor over the newest snapshot; earlier cursors stay on theirs.

        A ``restricted`` one opens no other files. Raises `MirrorError` if nothing is published yet.
        """
        manifest = read_manifest(self._folder)
        if manifest is None:
            raise MirrorError(
                f"nothing is published in {self._folder}: complete a Mirror.sync or `backread sync "
                f"{self._folder}` first"
            )
        with self._lock:
            if self._pid != os.getpid():
                _left_by_fork.append(self._open)
                self._open, self._pid = {}, os.getpid()
            opened = self._open.get(restricted)
            if opened is None or opened[0] != manifest:
                opened = manifest, self._connect(manifest, restricted)
                self._open[restricted] = opened
            return opened[1].cursor()

    def _connect(self, manifest: Manifest, restricted: bool) -> DuckDBPyConnection:
        with named_errors(self._folder):
            connection = connect(None)
            statements = view_statements(connection, self._folder, manifest)
            if restricted:
                statements = [*statements, *restrictions(self._folder / PUBLISHED)]
            for statement in statements:
                rows_of(connection, statement)
            return connection

    def profile(self) -> str | None:
        """The service's profile as JSON, None if none is published."""
        if read_manifest(self._folder) is None:
            return None
        found = self.rows(self.cursor(), f"SELECT {PROFILE} FROM {PROFILE}", [])
        return found[0][0] if found else None

    def rows(
        self, cursor: DuckDBPyConnection, statement: str, values: list[Any]
    ) -> list[tuple[Any, ...]]:
        """The rows of an internal query, on a cursor from `cursor`."""
        with named_errors(self._folder):
            return rows_of(cursor, statement, values)
