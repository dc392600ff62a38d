"""The writer's database while a statement or transaction fails or Ctrl-C comes: rows stay whole."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb
import pytest
from duckdb import DuckDBPyConnection

from backread import MirrorError
from backread.mirror import Mirror
from backread.mirror.store import database
from backread.mirror.store.database import read_memory_limit
from backread.mirror.store.engine import connect, load_duckdb, named_errors, rows_of, transaction
from backread.mirror.store.merge import stage
from backread.mirror.store.schema import create_statements
from backread.mirror.store.store import Store
from backread.mirror.sync.known import StoredRows
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, batch, rows, table
from helpers.python_process import check_silent, run
from helpers.waiting import PATIENCE

NUMBERS = "range(10_000_000::BIGINT)"
ENDLESS = f"SELECT count(*) FROM {NUMBERS} a, {NUMBERS} b WHERE a.range < b.range"

pytestmark = posix_only


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    connection = connect(None)
    for statement in create_statements("test"):
        rows_of(connection, statement)
    yield Store(tmp_path, connection)
    connection.close()


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


def test_ctrl_c_while_the_stored_state_is_queried_stays_ctrl_c(store):
    rows_of(store.connection, "ATTACH ':memory:' AS mirror")
    Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        StoredRows(store, ENDLESS).__arrow_c_stream__()
    assert store.rows("SELECT 1") == [(1,)]


class TaskEndedError(BaseException):
    """As a task runner ends a task."""


@pytest.mark.parametrize("kind", [TaskEndedError, TimeoutError])
def test_what_a_handler_raises_ends_a_statement_at_once(kind):
    connection, error = connect(None), kind("too long")

    def handle(*_: Any) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    began = time.monotonic()
    try:
        with pytest.raises(kind) as caught, named_errors(Path("chats")):
            rows_of(connection, ENDLESS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught.value is error
    assert time.monotonic() - began < PATIENCE
    # The connection is free again.
    assert rows_of(connection, "SELECT 1") == [(1,)]
    connection.close()


@pytest.mark.parametrize("earlier", [False, True], ids=["first query", "later query"])
def test_mirror_can_be_read_when_the_interpreter_exits(mirror, backread_server, earlier):
    BatchSource(batch([{"id": 7}], swept="snapshot")).sync_into(mirror.folder)
    code = f"""
        import atexit
        from backread.mirror import Mirror
        table = Mirror({str(mirror.folder)!r}).table("users")
        if {earlier}:
            assert table.num_rows == 1
        atexit.register(lambda: print(table.num_rows))
    """
    check_silent(run(code, backread_server), "1")


def wide_rows() -> BatchSource:
    bodies = (random.Random(each).randbytes(5_000).hex() for each in range(4_000))
    said = [{"user_id": 1, "id": each, "body": body} for each, body in enumerate(bodies)]
    return BatchSource(batch([{"id": 1}], said, swept="snapshot"))


def limit_temporary_files(connection: DuckDBPyConnection) -> DuckDBPyConnection:
    """As DuckDB does from what the disk has free."""
    rows_of(connection, "SET max_temp_directory_size = '1MB'")
    return connection


@pytest.mark.parametrize(
    ("full", "said"),
    [
        (False, r"memory limit is too small; raise .*try again"),
        (True, "the disk is full; free some space and try again"),
    ],
)
def test_memory_limit_that_is_too_small_or_fills_the_disk_is_named(mirror, monkeypatch, full, said):
    with monkeypatch.context() as patched:
        if full:
            opened = database._connect
            patched.setattr(database, "_connect", lambda *a: limit_temporary_files(opened(*a)))
        with pytest.raises(MirrorError, match=said):
            wide_rows().sync_into(mirror.folder, memory_limit=20 * 10**6)
    wide_rows().sync_into(mirror.folder)
    assert rows(mirror, "SELECT count(*) FROM messages") == [(4_000,)]


def test_without_a_limit_a_sync_takes_a_quarter_of_the_memory_and_at_most_4_gb(tmp_path):
    limit = "SELECT current_setting('memory_limit')"
    with load_duckdb().connect() as connection:
        [(own,)] = connection.execute(limit).fetchall()
    with database.open_database(tmp_path) as connection:
        [(taken,)] = connection.execute(limit).fetchall()
    # DuckDB's own limit is 80 % of the memory.
    expected = min(0.25 / 0.8 * read_memory_limit(own), 4 * 10**9)
    assert read_memory_limit(taken) == pytest.approx(max(expected, 256 * 10**6), rel=0.05)


@pytest.mark.parametrize(
    ("limit", "taken"), [("2GB", 2_000_000_000), ("512 MiB", 2**29), (10**9, 10**9)]
)
def test_memory_limits(tmp_path, limit, taken):
    assert Mirror(tmp_path, memory_limit=limit) == Mirror(tmp_path)
    assert read_memory_limit(limit) == taken
    for odd in ("", "2 apples", "10MB", -5):
        with pytest.raises(ValueError, match="memory_limit"):
            Mirror(tmp_path, memory_limit=odd)
