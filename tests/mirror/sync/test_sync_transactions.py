"""The writer's database while a statement or transaction fails or Ctrl-C comes: rows stay whole."""

import gc
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from helpers.command_line import posix_only
from helpers.mirrors import Row, table

pytest.importorskip("duckdb")

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from backread import _interruptible
from backread._interruptible import run_interruptibly
from backread.errors import MirrorError
from backread.mirror.store.engine import connect, named_errors, rows_of, transaction
from backread.mirror.store.merge import merge_rows, stage
from backread.mirror.store.schema import MESSAGES, USERS, create_statements
from backread.mirror.store.store import Store
from backread.mirror.sync.known import StoredRows

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    connection = connect(None)
    for statement in create_statements("test"):
        rows_of(connection, statement)
    yield Store(tmp_path, connection)
    connection.close()


def test_what_a_transaction_set_is_forgotten_if_it_fails(store):
    def held() -> list[str | None]:
        return [store.meta(key) for key in ("kept", "new", "mirror_id")]

    store.set_meta("kept", "1")
    with suppress(ZeroDivisionError), store.transaction():
        store.set_meta("kept", "2")
        store.set_meta("new", "3")
        store.drop_meta("mirror_id")
        assert held() == ["2", "3", None]
        raise ZeroDivisionError
    assert held() == ["1", None, "test"]
    with store.transaction():
        store.set_meta("kept", "4")
    assert store.rows("SELECT value FROM meta WHERE key = 'kept'") == [("4",)]


def test_batch_of_scattered_users_finds_their_rows(store):
    held: list[Row] = [{"user_id": user, "id": each} for user in range(100) for each in (1, 2)]
    assert merge_rows(store, MESSAGES, table("messages", held), NOW, 1) == (200, 0)
    scattered: list[Row] = [
        {"user_id": 99, "id": 1, "body": "new"},
        {"user_id": 0, "id": 2},
        {"user_id": 50, "id": 3},
    ]
    assert merge_rows(store, MESSAGES, table("messages", scattered), NOW, 1) == (1, 1)
    changed = "SELECT user_id, id FROM messages WHERE body = 'new' OR id = 3 ORDER BY ALL"
    assert store.rows(changed) == [(50, 3), (99, 1)]
    assert store.rows("SELECT count(*) FROM messages") == [(201,)]


class InterruptedConnection:
    """One in which Ctrl-C comes while rows are copied, in a transaction that fails as well."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, values: list[Any]) -> Any:
        if " AS SELECT " not in statement:
            return self._connection.execute(statement, values)
        with suppress(duckdb.Error):
            self._connection.execute("SELECT error('this aborts the transaction')").fetchall()
        signal.raise_signal(signal.SIGINT)
        return self._connection.execute(statement, values)


def test_ctrl_c_in_the_middle_of_a_commit_stays_ctrl_c(store):
    connection: Any = InterruptedConnection(store.connection)
    interrupted = Store(Path("chats"), connection)
    given = table("users", [{"id": 1}])
    with pytest.raises(KeyboardInterrupt), named_errors(Path("chats")), transaction(connection):
        stage(interrupted, "users", given, ("id",))
    assert store.rows("SELECT 1") == [(1,)]


class InterruptedRows:
    """Ctrl-C comes while they are handed over, the second time that they are."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._times = 0
        self.num_rows = rows.num_rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._times += 1
        if self._times > 1:
            signal.raise_signal(signal.SIGINT)
        return self._rows.__arrow_c_stream__(requested_schema)


def test_ctrl_c_while_rows_are_handed_over_stays_ctrl_c(store):
    given = InterruptedRows(table("users", [{"id": 1}]))
    with pytest.raises(KeyboardInterrupt), named_errors(Path("chats")), store.transaction():
        merge_rows(store, USERS, given, NOW, 1)
    assert store.rows("SELECT count(*) FROM users") == [(0,)]


@posix_only
def test_ctrl_c_while_the_stored_state_is_queried_stays_ctrl_c(store):
    rows_of(store.connection, "ATTACH ':memory:' AS mirror")
    numbers = "range(10_000_000::BIGINT)"
    endless = f"SELECT count(*) FROM {numbers} a, {numbers} b WHERE a.range < b.range"
    Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        StoredRows(store, endless).__arrow_c_stream__()
    assert store.rows("SELECT 1") == [(1,)]


def test_error_of_duckdb_while_ctrl_c_is_handled_is_no_ctrl_c(store):
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(MirrorError, match="no_such_table"), named_errors(Path("chats")):
            store.rows("FROM no_such_table")


class InterruptedOnce:
    """A connection in which a signal meets the first rollback."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.interrupt = connection.interrupt
        self.rollbacks = 0

    def execute(self, statement: str, values: list[Any]) -> Any:
        self.rollbacks += statement == "ROLLBACK"
        if statement == "ROLLBACK" and self.rollbacks == 1:
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
        return self.connection.execute(statement, values)


def test_a_rollback_that_is_interrupted_is_done_all_the_same():
    with duckdb.connect() as real:
        connection: Any = InterruptedOnce(real)
        with pytest.raises(duckdb.CatalogException), transaction(connection):
            real.execute("CREATE TABLE held (id INTEGER); CREATE TABLE held (id INTEGER)")
        assert connection.rollbacks == 2
        real.execute("BEGIN TRANSACTION")
        assert real.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]


class InterruptedSyncError(Exception):
    """What a test's callback raises."""


@posix_only
def test_a_database_that_a_second_signal_left_open_is_closed_with_its_error(tmp_path, monkeypatch):
    path = tmp_path / "mirror.duckdb"
    run = _interruptible._Call.run

    def run_slowly(call: Any) -> None:
        run(call)
        time.sleep(0.05)

    # The thread that ran the statement holds nothing of it once it has ended.
    monkeypatch.setattr(_interruptible._Call, "run", run_slowly)

    def stopped(*_: object) -> None:
        raise InterruptedSyncError

    def read_until_a_signal(connection: Any) -> None:
        connection.execute(f"ATTACH '{path}'")

        def endless() -> None:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            connection.execute("SELECT count(*) FROM range(1 << 40) WHERE random() > 2").fetchall()

        run_interruptibly(endless, connection.interrupt)

    before = signal.signal(signal.SIGUSR1, stopped)
    gc.disable()
    try:
        with pytest.raises(InterruptedSyncError):
            read_until_a_signal(duckdb.connect())
        duckdb.connect().execute(f"ATTACH '{path}'")
    finally:
        gc.enable()
        signal.signal(signal.SIGUSR1, before)
