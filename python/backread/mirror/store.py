"""The writer's database: what is held, and where the run stands, in the same transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backread.mirror.database import make_log
from backread.mirror.engine import rows_of, timestamp, transaction
from backread.mirror.service import Service

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from backread.mirror.source import ArrowTable

__all__ = ["Store"]


def _literal(value: float | datetime) -> str:
    return timestamp(value) if isinstance(value, datetime) else repr(value)


class _Given:
    """Rows that change under one name: to register a name costs as much as a small statement.

    The attribute is the rows' own method.
    """

    __slots__ = ("__arrow_c_stream__",)

    def __init__(self, rows: ArrowTable) -> None:
        self.hold(rows)

    def hold(self, rows: ArrowTable) -> None:
        self.__arrow_c_stream__ = rows.__arrow_c_stream__


class Store:
    """The tables, opened for writing."""

    def __init__(self, folder: Path, connection: DuckDBPyConnection) -> None:
        self.folder = folder
        self.connection = connection
        self._kept_service: Service | None = None
        self._given: dict[str, _Given] = {}
        self._prepared: dict[str, str] = {}

    def rows(self, statement: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs one statement and gives its rows."""
        return rows_of(self.connection, statement, values)

    def again(self, statement: str, *values: float | datetime) -> None:
        """Runs a statement that comes with every commit, and so is planned only once."""
        name = self._prepared.get(statement)
        if name is None:
            name = f"prepared_{len(self._prepared)}"
            self.rows(f"PREPARE {name} AS {statement}")
            self._prepared[statement] = name
        # DuckDB takes no parameters here.
        literals = ", ".join(map(_literal, values))
        self.rows(f"EXECUTE {name}({literals})" if values else f"EXECUTE {name}")

    def transaction(self) -> AbstractContextManager[None]:
        """Commits the block as one, or rolls it back, on Ctrl-C too."""
        make_log(self.folder)
        return transaction(self.connection)

    @contextmanager
    def given(self, name: str, rows: ArrowTable) -> Iterator[str]:
        """The block can read the Arrow rows as a table, whose name in SQL this gives.

        ``name`` stands for their columns, which are the same each time.
        """
        table = f"given_{name}"
        given = self._given.get(name)
        if given is None:
            given = _Given(rows)
            self.connection.register(table, given)
            self._given[name] = given
        given.hold(rows)
        yield table

    def use_one_thread(self) -> None:
        """Statements run in the caller's thread alone, which costs small ones less."""
        self.rows("SET GLOBAL threads = 1")

    def use_all_threads(self) -> None:
        """Statements run on as many cores as there are."""
        self.rows("RESET GLOBAL threads")

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
