"""Reading the published snapshot: a database in memory whose tables are views over its files."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from backread.errors import MirrorError
from backread.mirror.engine import connect, named_errors, rows_of
from backread.mirror.manifest import Manifest, read_manifest
from backread.mirror.schema import PROFILE
from backread.mirror.views import view_statements

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["SnapshotReader"]

# DuckDB's threads do not survive a fork: closing such a connection in the child would hang.
_left_by_fork: list[object] = []


class SnapshotReader:
    """Gives connections to the newest snapshot; never opens ``mirror.duckdb``, waits for nobody."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._pid = os.getpid()
        self._manifest: Manifest | None = None
        self._connection: DuckDBPyConnection | None = None

    def cursor(self) -> DuckDBPyConnection:
        """A cursor over the newest snapshot; one already given keeps to its own snapshot.

        `MirrorError` where nothing is published yet.
        """
        manifest = read_manifest(self._folder)
        if manifest is None:
            raise MirrorError(
                f"nothing is published in {self._folder}: run Mirror.sync or `backread sync "
                f"{self._folder}` to its end first"
            )
        with self._lock:
            if self._pid != os.getpid():
                _left_by_fork.append(self._connection)
                self._connection, self._pid = None, os.getpid()
            if self._connection is None or self._manifest != manifest:
                self._connection = self._open(manifest)
                self._manifest = manifest
            return self._connection.cursor()

    def _open(self, manifest: Manifest) -> DuckDBPyConnection:
        with named_errors(self._folder):
            connection = connect(None)
            for statement in view_statements(self._folder, manifest):
                rows_of(connection, statement)
            return connection

    def profile(self) -> str | None:
        """The service's profile as JSON, None where none is published."""
        if read_manifest(self._folder) is None:
            return None
        found = self.rows(self.cursor(), f"SELECT {PROFILE} FROM {PROFILE}", [])
        return found[0][0] if found else None

    def rows(
        self, cursor: DuckDBPyConnection, statement: str, values: list[Any]
    ) -> list[tuple[Any, ...]]:
        """The rows of one query of the mirror's own, on a cursor that `cursor` gave."""
        with named_errors(self._folder):
            return rows_of(cursor, statement, values)
