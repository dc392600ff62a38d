"""The writer's database: the rows and the state of the run, in the same transactions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from backread._client.services import is_loopback
from backread._interruptible import run_interruptibly
from backread.errors import MirrorError
from backread.mirror.store.database import make_log
from backread.mirror.store.engine import from_microseconds, quoted, rows_of, timestamp, transaction
from backread.mirror.store.schema import PRIVACY, SECRET_MARK

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from backread._client.client import Client

GENERATION = "generation"
"""The key in ``meta`` that counts the states to publish."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service as clients identify it: base URL and vendor word.

    ``secret_mark`` tells that the secret is another, see `Source`.
    """

    base_url: str
    vendor: str
    secret_mark: str = field(compare=False)

    def __str__(self) -> str:
        return f"{self.base_url} (vendor {self.vendor})"

    def has_other_secret(self, held: Service | None) -> bool:
        """Whether the mirror that holds ``held`` was last synced with another secret."""
        return held is not None and held.secret_mark != self.secret_mark

    def may_have_moved_from(self, held: Service) -> bool:
        """Whether it may be the same service, whose port on this machine has changed.

        Mocks and forwarded ports often have another one each time. The path stays: a gateway has
        several services by their paths.
        """
        given, before = urlsplit(self.base_url), urlsplit(held.base_url)
        return (
            is_loopback(given.hostname or "")
            and is_loopback(before.hostname or "")
            and (given.scheme, given.path) == (before.scheme, before.path)
            and self.vendor == held.vendor
            and not self.has_other_secret(held)
        )


def service_of(client: Client, mirror_id: str | None) -> Service:
    """The service that a client reads, as the mirror with this id stores it."""
    key = hashlib.blake2s((mirror_id or "").encode(), digest_size=16).digest()
    return Service(client.base_url, client.vendor, client._secret_mark(key))


def refuse_other_service(folder: Path, held: Service | None, given: Service, moved: bool) -> None:
    """Raises `MirrorError` if the mirror holds another service than the one to be read.

    With ``moved`` they count as the same.
    """
    if held is None or held == given or moved or given.may_have_moved_from(held):
        return
    raise MirrorError(
        f"the mirror in {folder} is a copy of the service at {held}, but this client reads "
        f"{given}; sync into another folder or, if it is the same service at a new address, sync "
        "with moved=True (on the command line: --moved)"
    )


class ArrowTable(Protocol):
    """Rows that can be scanned repeatedly: each call returns a new Arrow stream."""

    @property
    def num_rows(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def _literal(value: float | datetime | str) -> str:
    if isinstance(value, str):
        return quoted(value)
    return timestamp(value) if isinstance(value, datetime) else repr(value)


class _Registered:
    """An object registered once whose rows are replaced, since registering costs a statement.

    The attribute is the method of the current rows.
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
        self.privacy: str | None = None
        """What this sync stores of its `Choice` with the first rows."""
        self.connection = connection
        self._stored_service: Service | None = None
        self._registered: dict[str, _Registered] = {}
        self._prepared: dict[str, str] = {}
        self._newest_commit: datetime | None = None
        self._meta: dict[str, str] | None = None
        self._one_thread = False

    def now(self) -> datetime:
        """The time of a new commit, later than all earlier ones even if the clock was set back."""
        if self._newest_commit is None:
            [(newest,)] = self.rows(
                "SELECT epoch_us(max(moment)) FROM "
                "(SELECT unnest([ended_at, committed_at]) AS moment FROM runs "
                "UNION ALL SELECT forgotten_at FROM forgotten)"
            )
            self._newest_commit = from_microseconds(newest or 0)
        later = self._newest_commit + timedelta(microseconds=1)
        self._newest_commit = max(datetime.now(UTC), later)
        return self._newest_commit

    def rows(
        self, statement: str, values: list[Any] | dict[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Runs one statement and returns its rows."""
        return rows_of(self.connection, statement, values)

    def execute_prepared(
        self, statement: str, *values: float | datetime | str
    ) -> list[tuple[Any, ...]]:
        """Runs a statement that is repeated with each commit, and is planned only once."""
        name = self._prepared.get(statement)
        if name is None:
            name = f"prepared_{len(self._prepared)}"
            self.rows(f"PREPARE {name} AS {statement}")
            self._prepared[statement] = name
        # EXECUTE accepts no parameters in DuckDB.
        literals = ", ".join(map(_literal, values))
        return self.rows(f"EXECUTE {name}({literals})" if values else f"EXECUTE {name}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Runs the block as a transaction; rolls back on any exception, including Ctrl-C."""
        make_log(self.folder)
        try:
            with transaction(self.connection):
                yield
        except BaseException:
            # What the block set is not stored.
            self._meta = None
            raise

    def register(self, name: str, rows: ArrowTable) -> str:
        """Makes the Arrow rows readable as a table; returns its name in SQL.

        ``name`` identifies their columns, which must be the same each time. The rows stay until
        others of that name replace them.
        """
        table = f"registered_{name}"
        registered = self._registered.get(name)
        if registered is None:
            registered = _Registered(rows)
            run_interruptibly(
                lambda: self.connection.register(table, registered), self.connection.interrupt
            )
            self._registered[name] = registered
        registered.hold(rows)
        return table

    def use_one_thread(self) -> None:
        """Runs statements in the caller's thread only, which is faster for small ones."""
        if not self._one_thread:
            self.rows("SET GLOBAL threads = 1")
            self._one_thread = True

    def use_all_threads(self) -> None:
        """Runs statements on all cores."""
        if self._one_thread:
            self.rows("RESET GLOBAL threads")
            self._one_thread = False

    @contextmanager
    def in_one_thread(self) -> Iterator[None]:
        """Runs the block's statements in the caller's thread only."""
        self.use_one_thread()
        try:
            yield
        finally:
            self.use_all_threads()

    def meta(self, key: str) -> str | None:
        """A value of the table ``meta``, which is read once."""
        return self._all_meta().get(key)

    def set_meta(self, key: str, value: str) -> None:
        """Sets a value in the table ``meta``."""
        if self.meta(key) != value:
            self.drop_meta(key)
            self.rows("INSERT INTO meta VALUES (?, ?)", [key, value])
            self._all_meta()[key] = value

    def drop_meta(self, key: str) -> None:
        """Removes a value from the table ``meta``, if it is there."""
        self.rows("DELETE FROM meta WHERE key = ?", [key])
        self._all_meta().pop(key, None)

    def _all_meta(self) -> dict[str, str]:
        if self._meta is None:
            self._meta = dict(self.rows("SELECT key, value FROM meta"))
        return self._meta

    @property
    def generation(self) -> int:
        """The number of states to publish."""
        return int(self.meta(GENERATION) or 0)

    def count_change(self) -> None:
        """Counts a state to publish, inside the caller's transaction."""
        self.set_meta(GENERATION, str(1 + self.generation))

    def never_finished(self) -> bool:
        """True if no run was ever published, to its end or in part."""
        return not self.rows("SELECT 1 FROM runs WHERE state <> 'unfinished' LIMIT 1")

    def service(self) -> Service | None:
        """The mirror's service, None until rows from one were committed."""
        base_url, vendor = self.meta("base_url"), self.meta("vendor")
        mark = self.meta(SECRET_MARK)
        if base_url is None or vendor is None or mark is None:
            return None
        return Service(base_url, vendor, mark)

    def set_service(self, service: Service) -> None:
        """Stores which service the mirror holds, and how its rows are made private."""
        if self._stored_service != service:
            self.set_meta("base_url", service.base_url)
            self.set_meta("vendor", service.vendor)
            self.set_meta(SECRET_MARK, service.secret_mark)
            if self.privacy is not None:
                self.set_meta(PRIVACY, self.privacy)
            self._stored_service = service
