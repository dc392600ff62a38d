"""The folder of a mirror, which holds one service, and its database."""

import errno
import hashlib
import json
import os
import random
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb
import pytest
from duckdb import DuckDBPyConnection

from backread import Client, ConnectError, MirrorBusyError, MirrorError, ServiceProfile
from backread._files import lock
from backread.mirror import Mirror
from backread.mirror.published.manifest import DataFile, Manifest
from backread.mirror.published.views import PUBLISHED_TABLES
from backread.mirror.store import database
from backread.mirror.store.database import read_memory_limit
from backread.mirror.store.engine import connect, load_duckdb, named_errors, rows_of, transaction
from backread.mirror.store.merge import stage
from backread.mirror.store.schema import FORMAT, create_statements
from backread.mirror.store.store import Store
from backread.mirror.sync.known import StoredRows
from backread.testing import MockServer
from helpers.command_line import posix_only
from helpers.file_modes import files_below
from helpers.mirrors import BatchSource, batch, leave_torn_log, rows, sync, table
from helpers.python_process import check_silent, run
from helpers.waiting import PATIENCE

SOURCE = BatchSource(batch([{"id": 1}], swept="snapshot"))


@pytest.mark.parametrize("name", ["it's [1] 多言語 50%", "day=1"])
def test_folder_may_have_any_name(tmp_path, server, name):
    mirror = Mirror(tmp_path / name / "chats")
    sync(mirror, server)
    assert rows(mirror, "SELECT count(*) FROM users") == [(40,)]
    assert "day" not in mirror.sql("SELECT * FROM users").columns


@posix_only
def test_the_root_of_a_volume_and_a_link_to_nowhere_are_called_so(tmp_path, server):
    (tmp_path / "chats").symlink_to(tmp_path / "disk")
    with pytest.raises(MirrorError, match=r"chats is a symbolic link to .*disk.* create that"):
        sync(Mirror(tmp_path / "chats"), server)
    (tmp_path / "chats").unlink()
    (tmp_path / "lost+found").mkdir()
    said = rf"\(lost\+found\); .*, or use a folder in it, such as .*{tmp_path.name}.chats"
    with pytest.raises(MirrorError, match=said):
        sync(Mirror(tmp_path), server)


CANNOT_OPEN = 'Cannot open file "/disk full/corrupt/mirror.duckdb": '


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (duckdb.IOException(f"IO Error: {CANNOT_OPEN}Operation not permitted"), "its permissions"),
        (duckdb.IOException(f"IO Error: {CANNOT_OPEN}Too many open files"), "raise its limit"),
        (OSError(errno.EMFILE, "Too many open files", "snapshot.json"), r"raise .* \(ulimit -n"),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG)), "the disk is full"),
    ],
)
def test_errors_say_what_to_do_whatever_files_are_called(tmp_path, error, advice):
    with pytest.raises(MirrorError, match=advice), named_errors(tmp_path):
        raise error


def test_log_whose_end_a_power_cut_lost_is_moved_away(mirror, server):
    """File systems leave zeros where data was not yet written."""
    sync(mirror, server)
    leave_torn_log(mirror.folder)
    with pytest.raises(MirrorError, match=r"mirror\.duckdb\.wal is damaged.*; move that file away"):
        sync(mirror, server)
    (mirror.folder / "mirror.duckdb.wal").rename(mirror.folder.parent / "moved.wal")
    server.world.add_messages(server.world.user_ids()[0], 1)
    assert sync(mirror, server).messages_added == 1
    assert rows(mirror, "SELECT count(*) FROM users") == [(40,)]


def test_a_database_that_was_deleted_is_not_begun_anew(mirror, server):
    """What is published may have deleted rows, which the service shows no more."""
    sync(mirror, server)
    (mirror.folder / "mirror.duckdb").unlink()
    with pytest.raises(MirrorError, match=r"has lost its mirror\.duckdb; .* a new folder"):
        sync(mirror, server)
    assert rows(mirror, "SELECT count(*) FROM users") == [(40,)]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_requests": 0}, ValueError, "max_requests must be 1 or more"),
        ({"max_requests": "5"}, TypeError, "max_requests must be an int, not str"),
        ({"max_seconds": float("inf")}, ValueError, "None for no limit, not inf"),
        ({"users": []}, ValueError, "users is empty"),
        ({"users": ["42"]}, TypeError, r"users\[0\] must be an int, not str"),
        ({"users": [1], "mode": "full"}, ValueError, "for a full run"),
        ({"mode": "swift"}, ValueError, "incremental"),
        ({"profile": "x"}, TypeError, r"a str: pass .*probe\(\)"),
        ({"on_progress": 3}, TypeError, r"takes a SyncProgress.* an int"),
        ({"max_request": 5}, TypeError, "did you mean max_requests"),
    ],
)
def test_mirror_sync_refuses_wrong_options(mirror, server, options, error, said):
    with server.client() as client, pytest.raises(error, match=said):
        mirror.sync(client, **options)
    with pytest.raises(TypeError, match="AsyncClient"):
        mirror.sync(server.async_client())
    assert not mirror.folder.exists()


def test_folder_that_holds_something_else_is_refused(mirror, server):
    mirror.folder.mkdir()
    photo = mirror.folder / "beach.jpg"
    photo.write_bytes(b"jpeg")
    with pytest.raises(MirrorError, match=r"not a mirror.*beach\.jpg.*empty folder"):
        sync(mirror, server)
    with pytest.raises(MirrorError, match="is a file"):
        sync(Mirror(photo), server)
    assert list(mirror.folder.iterdir()) == [photo]
    assert sum(server.counts().values()) == 0
    database = photo.rename(mirror.folder / "mirror.duckdb")
    with pytest.raises(MirrorError, match=r"mirror\.duckdb is damaged.*new folder"):
        sync(mirror, server)
    database.unlink()
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE meta (id BIGINT)")
    with pytest.raises(MirrorError, match="backread did not create"):
        sync(mirror, server)


def test_duckdb_that_is_too_old_is_named(mirror, server, monkeypatch):
    monkeypatch.setattr(duckdb, "__version__", "1.4.3")
    said = r"needs DuckDB 2[\d.]* or later, but 1\.4\.3 .*; run: pip install -U duckdb"
    with pytest.raises(MirrorError, match=said):
        sync(mirror, server)
    assert not mirror.folder.exists()
    # A pre-release of a later one is not.
    monkeypatch.setattr(duckdb, "__version__", "2.11.0.dev5")
    sync(mirror, server)


def test_missing_duckdb_says_what_to_install(mirror, server, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MirrorError, match=r'pip install "backread\[mirror\]"'):
        sync(mirror, server)
    assert not mirror.folder.exists()


SHAPE = "c1ba"
"""Of what format 7 stores. If it differs, raise `FORMAT` and put the new one here."""


def refused(found: object) -> Any:
    sentence = rf"has format {found}, and this backread reads only format {FORMAT}; sync into a new"
    return pytest.raises(MirrorError, match=sentence)


@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1])
def test_a_mirror_of_another_format_is_neither_read_nor_written(mirror, number):
    SOURCE.sync_into(mirror.folder)
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(number)])
    path = mirror.folder / "published" / "current" / "snapshot.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"format": number}))
    before = {each: each.read_bytes() for each in files_below(mirror.folder)}
    for use in (
        lambda: SOURCE.sync_into(mirror.folder),
        lambda: mirror.forget(1),
        lambda: mirror.sql("FROM users"),
    ):
        with refused(number):
            use()
    assert before == {each: each.read_bytes() for each in before}
    # A killed first sync has published nothing.
    (mirror.folder / "published" / "current").unlink()
    with refused(number):
        SOURCE.sync_into(mirror.folder)


def test_other_tables_or_another_manifest_are_another_format():
    stored = [*create_statements("id"), PUBLISHED_TABLES, Manifest.__annotations__]
    shape = hashlib.sha256(repr([*stored, DataFile.__annotations__]).encode()).hexdigest()
    assert shape[:4] == SHAPE, "raise FORMAT, since mirrors made before cannot be read"


def refusal(mirror: Mirror, kind: type[MirrorError] = MirrorBusyError) -> str:
    with pytest.raises(kind) as caught:
        SOURCE.sync_into(mirror.folder)
    return str(caught.value)


@posix_only
def test_sync_refused_by_a_lock_names_its_holder_and_start(mirror):
    said: list[str] = []
    SOURCE.sync_into(mirror.folder, on_progress=lambda now: said.append(refusal(mirror)))
    found = re.search(r"synced by process (\d+) on \S+, since (\S+ \S+) UTC; .*try again", said[0])
    assert found
    assert int(found[1]) == os.getpid()
    since = datetime.fromisoformat(f"{found[2]}+00:00")
    assert timedelta(0) <= datetime.now(UTC) - since < timedelta(minutes=1)
    # It is free again afterwards, and names nobody.
    assert (mirror.folder / "sync.lock").read_bytes() == b""
    SOURCE.sync_into(mirror.folder)


@posix_only
def test_what_is_in_the_file_of_a_lock_decides_nothing(mirror):
    import fcntl

    mirror.folder.mkdir()
    with (mirror.folder / "sync.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for written in (b"", b"process 1 on \x1b[2J, since \xff"):
            file.write(written)
            file.flush()
            assert "being synced by another process; wait" in refusal(mirror)
    left = "process 4321 on night-job, since 2026-03-01 02:00:00 UTC"
    (mirror.folder / "sync.lock").write_text(left)
    # A killed sync left it.
    SOURCE.sync_into(mirror.folder)


def test_folder_whose_disk_keeps_no_locks_is_refused(mirror, monkeypatch):
    def no_locks(descriptor: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "try_lock", no_locks)
    assert "does not support locks" in refusal(mirror, MirrorError)


# --- the service ----------------------------------------------------------------------------------


HERE = "https://chat.example.com/api"
THERE = "https://chat.example.org"


def users(*identifiers: int, base_url: str = HERE, **service: str) -> BatchSource:
    shown = batch([{"id": each} for each in identifiers], swept="snapshot")
    return BatchSource(shown, base_url=base_url, **service)


def held(mirror: Mirror) -> list[int]:
    return [each for (each,) in rows(mirror, "SELECT id FROM users ORDER BY id")]


def test_another_service_is_refused_before_anything_is_read(mirror):
    users(1, 2).sync_into(mirror.folder)
    for other in (users(7, base_url=THERE), users(7, vendor="other")):
        with pytest.raises(MirrorError) as caught:
            other.sync_into(mirror.folder)
        named = (f"{HERE} (vendor example)", f"{other.base_url} (vendor {other.vendor})")
        for text in (*named, "another folder", "moved=True", "--moved"):
            assert text in str(caught.value)
        assert other.done is None
    assert held(mirror) == [1, 2]
    users(1, 2, 3).sync_into(mirror.folder)
    assert held(mirror) == [1, 2, 3]


def test_service_that_moved_is_known_by_its_new_address(mirror):
    users(1).sync_into(mirror.folder)
    users(1, 2, base_url=THERE, vendor="other").sync_into(mirror.folder, moved=True)
    users(1, 2, 3, base_url=THERE, vendor="other").sync_into(mirror.folder)
    assert held(mirror) == [1, 2, 3]
    with pytest.raises(MirrorError, match=r"copy of the service at https://chat\.example\.org "):
        users(1).sync_into(mirror.folder)


def test_address_that_never_answered_is_not_kept(mirror):
    for moved in (False, True):
        mistyped = BatchSource(ConnectError("no such host"), base_url="https://caht.example.com")
        with pytest.raises(ConnectError):
            mistyped.sync_into(mirror.folder, moved=moved)
        users(1, 2).sync_into(mirror.folder)
    assert held(mirror) == [1, 2]


PORTS = ("http://127.0.0.1:7001", "http://localhost:7002")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"secret_mark": "beef"}, "another secret"),
        ({"vendor": "other"}, "another vendor"),
        ({"base_url": f"{PORTS[1]}/other"}, "another path"),
        ({"base_url": PORTS[1].replace("http", "https")}, "another scheme"),
    ],
)
def test_another_service_behind_a_forwarded_port_is_refused(mirror, other, why):
    users(1, 2, base_url=PORTS[0]).sync_into(mirror.folder)
    users(1, 2, 3, base_url=PORTS[1]).sync_into(mirror.folder)
    with pytest.raises(MirrorError, match="is a copy of the service at http://localhost:7002 "):
        users(7, **{"base_url": PORTS[0]} | other).sync_into(mirror.folder)
    assert held(mirror) == [1, 2, 3], why


def test_another_secret_at_the_same_address_is_said(mirror):
    assert not users(1).sync_into(mirror.folder).has_other_secret
    assert users(1, secret_mark="beef").sync_into(mirror.folder).has_other_secret
    assert not users(1, secret_mark="beef").sync_into(mirror.folder).has_other_secret


def test_the_mark_of_a_secret_tells_little_of_it():
    def mark(secret: str) -> str:
        return Client("http://127.0.0.1:1", secret, "example")._secret_mark(bytes(16))

    marks = {mark(f"secret-{each}") for each in range(40)}
    assert len(marks) > 30
    assert all(re.fullmatch("[0-9a-f]{4}", each) for each in marks)
    assert mark("mock_secret") == "mock"


@pytest.fixture
def profile(server: MockServer) -> ServiceProfile:
    with server.client() as client:
        return client.probe()


def test_mirror_profile_is_kept_published_and_handed_to_every_run(mirror, server, profile):
    assert mirror.profile is None
    first = BatchSource(batch([{"id": 1}]), ConnectError("the connection broke"))
    with pytest.raises(ConnectError):
        first.sync_into(mirror.folder, profile=profile.to_json(), max_staleness=60.0)
    second = BatchSource(batch(swept="snapshot"))
    second.sync_into(mirror.folder, "full")
    assert first.profile == second.profile == profile.to_dict()
    assert (first.mode, first.max_staleness) == ("incremental", 60.0)
    assert (second.mode, second.max_staleness) == ("full", None)
    assert Mirror(mirror.folder).profile == profile
    with server.client() as client:
        other = client.probe()
    BatchSource().sync_into(mirror.folder, profile=other.to_json())
    assert mirror.profile == other != profile


def test_profile_that_a_newer_backread_made_is_refused_by_name(mirror, profile):
    document = json.loads(profile.to_json()) | {"profile_version": 99}
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(
        mirror.folder, profile=json.dumps(document)
    )
    with pytest.raises(ValueError, match="99"):
        _ = mirror.profile
    # Its rows can be read all the same.
    assert rows(mirror, "SELECT id FROM users") == [(1,)]


def test_command_keeps_what_probe_wrote(backread, mirror, profile, tmp_path):
    found = tmp_path / "profile.json"
    found.write_text(profile.to_json(), encoding="utf-8")
    command = ("sync", mirror.folder, "--max-requests", 1, "--profile")
    assert backread(*command, found).code == 0
    assert mirror.profile == profile
    found.write_text("no profile", encoding="utf-8")
    for wrong in (found, tmp_path / "missing.json"):
        done = backread(*command, wrong)
        assert (done.code, bool(done.line)) == (2, True)


# --- the writer's database, while a statement fails, Ctrl-C comes or memory ends ------------------


NUMBERS = "range(10_000_000::BIGINT)"
ENDLESS = f"SELECT count(*) FROM {NUMBERS} a, {NUMBERS} b WHERE a.range < b.range"


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
        self.rolled_back = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, values: list[Any]) -> Any:
        if statement == "ROLLBACK" and not self.rolled_back:
            # The signal interrupts this as well.
            self.rolled_back = True
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
        if " AS SELECT " not in statement:
            return self._connection.execute(statement, values)
        with suppress(duckdb.Error):
            self._connection.execute("SELECT error('this aborts the transaction')").fetchall()
        signal.raise_signal(signal.SIGINT)
        return self._connection.execute(statement, values)


@posix_only
def test_ctrl_c_in_the_middle_of_a_commit_stays_ctrl_c(store):
    connection: Any = InterruptedConnection(store.connection)
    interrupted = Store(Path("chats"), connection)
    given = table("users", [{"id": 1}])
    with pytest.raises(KeyboardInterrupt), named_errors(Path("chats")), transaction(connection):
        stage(interrupted, "users", given, ("id",))
    assert (connection.rolled_back, store.rows("SELECT 1")) == (True, [(1,)])


@posix_only
def test_ctrl_c_while_the_stored_state_is_queried_stays_ctrl_c(store):
    rows_of(store.connection, "ATTACH ':memory:' AS mirror")
    Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        StoredRows(store, ENDLESS).__arrow_c_stream__()
    assert store.rows("SELECT 1") == [(1,)]


class TaskEndedError(BaseException):
    """As a task runner ends a task."""


@posix_only
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
