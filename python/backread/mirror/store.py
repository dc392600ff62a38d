"""The writer's database: what is held, and where the run stands, in the same transactions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backread.mirror.engine import rows_of, transaction
from backread.mirror.service import Service

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Store"]


class Store:
    """The tables, opened for writing."""

    def __init__(self, folder: Path, connection: DuckDBPyConnection) -> None:
        self.folder = folder
        self.connection = connection
        self._kept_service: Service | None = None

    def rows(self, statement: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs one statement and gives its rows."""
        return rows_of(self.connection, statement, values)

    def transaction(self) -> AbstractContextManager[None]:
        """Commits the block as one, or rolls it back, on Ctrl-C too."""
        return transaction(self.connection)

    def meta(self, key: str) -> str | None:
        """A value of the table ``meta``."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", [key])
        return found[0][0] if found else None

    def keep(self, key: str, value: str) -> None:
        """Puts a value into the table ``meta``, in the place of the one before."""
        if self.meta(key) != value:
            self.rows("DELETE FROM meta WHERE key = ?", [key])
            self.rows("INSERT INTO meta VALUES (?, ?)", [key, value])

    def service(self) -> Service | None:
        """The service that the mirror holds, None before anything came from one."""
        base_url, vendor = self.meta("base_url"), self.meta("vendor")
        return None if base_url is None or vendor is None else Service(base_url, vendor)

    def keep_service(self, service: Service) -> None:
        """Notes the service that the mirror holds."""
        if self._kept_service != service:
            self.keep("base_url", service.base_url)
            self.keep("vendor", service.vendor)
            self._kept_service = service
