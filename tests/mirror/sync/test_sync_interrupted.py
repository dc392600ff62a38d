"""Syncs that are killed, interrupted, broken off or met by others; the mirror stays whole."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from backread import ConnectError, MirrorError
from backread.testing import MockServer, World

pytest.importorskip("duckdb")

import duckdb

from backread import _interruptible
from backread._interruptible import run_interruptibly
from backread.mirror import Mirror, SyncProgress
from backread.mirror.store.engine import transaction
from helpers import CHILDREN
from helpers.command_line import settings_of
from helpers.mirrors import rows, sync
from helpers.waiting import AT_ONCE, wait_for

CHILD = CHILDREN / "sync_stepwise.py"
SECONDS = 120

posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")


@pytest.fixture
def server() -> Iterator[MockServer]:
    """About ten commits' worth of messages."""
    with MockServer(World(seed=5, users=300, messages_per_user=(150, 200))) as running:
        yield running


@contextmanager
def child(
    mirror: Mirror, server: MockServer, mode: str = "incremental"
) -> Iterator[subprocess.Popen[str]]:
    """A sync in another process; see sync_stepwise.py."""
    with subprocess.Popen(
        [sys.executable, str(CHILD), str(mirror.folder), mode],
        env=os.environ | settings_of(server),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def step(process: subprocess.Popen[str], wanted: str = "reading", times: int = 1) -> list[Any]:
    """Lets the sync go on until it has told the phase so often; it then waits once more."""
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        progress: list[Any] = json.loads(line)
        times -= progress[0] == wanted
        if times == 0:
            return progress
        go_on(process)


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def assert_is_the_world(mirror: Mirror, world: World) -> None:
    """Exactly the service's rows, once each."""
    held = rows(mirror, "SELECT user_id, id FROM messages ORDER BY ALL")
    assert held == sorted(
        (user_id, message_id)
        for user_id in world.user_ids()
        for message_id in world.message_ids(user_id)
    )
    assert rows(mirror, "SELECT id FROM users ORDER BY id") == [
        (user_id,) for user_id in sorted(world.user_ids())
    ]
    for user_id in world.user_ids()[::50]:
        for message in mirror.conversation(user_id):
            assert message.body == world.message(user_id, message.id)["body"]


def test_sync_killed_three_times_then_holds_exactly_the_rows(mirror, server):
    committed = 0
    for commits, delay in ((2, 0.0), (3, 0.004), (4, 0.012)):
        with child(mirror, server) as process:
            *_, requests = step(process, times=commits)
            # Each run goes on from what the one before it had committed.
            assert requests >= committed
            committed = requests
            go_on(process)
            # Somewhere in the reading, the merging or the commit of the next batch.
            time.sleep(delay)
            process.kill()
        assert process.returncode != 0
    report = sync(mirror, server)
    assert (report.run_id, report.resumed) == (1, True)
    assert report.run.messages_added == server.world.total_messages
    assert_is_the_world(mirror, server.world)
    assert rows(mirror, "SELECT state, resumptions FROM runs") == [("finished", 3)]
    again = sync(mirror, server)
    assert (again.run_id, again.resumed, again.messages_added) == (2, False, 0)


def test_finished_lists_are_not_read_again(mirror, server):
    with child(mirror, server) as process:
        *_, sent = step(process, times=5)
        # A kill would keep those that are under way from the mock's counts.
        wait_for(lambda: sum(server.counts().values()) >= sent)
        process.kill()
    before = server.counts()["messages"]
    report = sync(mirror, server)
    after = server.counts()["messages"] - before
    whole = sum(-(-len(server.world.message_ids(each)) // 99) for each in server.world.user_ids())
    assert after < whole
    assert report.requests <= before + after + server.counts()["users"]
    assert_is_the_world(mirror, server.world)


def test_sync_killed_before_publishing_is_published_by_the_next(mirror, server):
    with child(mirror, server) as process:
        step(process, "publishing")
        process.kill()
    with pytest.raises(MirrorError, match="nothing is published"):
        mirror.sql("SELECT 1")
    published: list[Any] = []

    def tell(now: SyncProgress) -> None:
        # What the kill left undone comes before anything is read.
        published.extend(rows(mirror, "SELECT max(run_id) FROM runs"))
        raise InterruptedSyncError

    with pytest.raises(InterruptedSyncError):
        sync(mirror, server, on_progress=tell)
    assert published == [(1,)]
    assert_is_the_world(mirror, server.world)


class InterruptedSyncError(Exception):
    """What a test's callback raises."""


def test_full_run_that_was_killed_marks_only_what_is_gone(mirror, server):
    world = World(seed=5, users=90, messages_per_user=(60, 90))
    with MockServer(world) as small:
        sync(mirror, small)
        gone = world.user_ids()[3]
        expected = 1 + len(world.message_ids(gone))
        world.remove_user(gone)
        with child(mirror, small, "full") as process:
            step(process, times=2)
            process.kill()
        # The resumed run stays full although this call does not ask for it.
        report = sync(mirror, small)
    assert (report.mode, report.resumed, report.deleted) == ("full", True, expected)


def test_what_a_callback_raises_ends_the_sync_and_keeps_the_rows(mirror, server):
    def tell(now: SyncProgress) -> None:
        if now.messages:
            raise InterruptedSyncError("enough")

    with pytest.raises(InterruptedSyncError, match="enough"):
        sync(mirror, server, on_progress=tell)
    report = sync(mirror, server)
    assert report.resumed
    assert_is_the_world(mirror, server.world)


def test_error_of_the_service_passes_unchanged_and_the_next_sync_goes_on(mirror, server):
    def tell(now: SyncProgress) -> None:
        if now.messages:
            server.stop()

    with server.client(max_retries=0) as client, pytest.raises(ConnectError) as caught:
        mirror.sync(client, on_progress=tell)
    assert caught.value.attempts
    with MockServer(server.world) as other:
        report = sync(mirror, other)
    assert report.resumed
    assert_is_the_world(mirror, server.world)


@posix_only
def test_ctrl_c_leaves_the_mirror_resumable(mirror, server):
    with child(mirror, server) as process:
        step(process, times=3)
        go_on(process)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=SECONDS)
    assert "KeyboardInterrupt" in error
    report = sync(mirror, server)
    assert report.resumed
    assert_is_the_world(mirror, server.world)


def test_second_sync_of_a_folder_fails_at_once_and_names_the_first(mirror, server):
    failures: list[str] = []

    def tell(now: SyncProgress) -> None:
        if not failures:
            with pytest.raises(MirrorError) as caught:
                sync(Mirror(mirror.folder), server)
            failures.append(str(caught.value))

    sync(mirror, server, on_progress=tell)
    assert f"process {os.getpid()}, since " in failures[0]


def test_second_sync_in_another_process_is_refused_too(mirror, server):
    with child(mirror, server) as process:
        step(process)
        started = time.monotonic()
        with pytest.raises(MirrorError, match=rf"process {process.pid}, since "):
            sync(mirror, server)
        assert time.monotonic() - started < AT_ONCE
        process.kill()
    # The lock goes with its holder.
    sync(mirror, server)


def test_reader_sees_the_snapshot_before_until_the_sync_has_ended(mirror, server):
    sync(mirror, server)
    before = server.world.total_messages
    held_open = mirror.sql("SELECT count(*) FROM messages")
    server.world.add_messages(server.world.user_ids()[0], 10)
    seen: list[Any] = []

    def tell(now: SyncProgress) -> None:
        if now.phase != "finished":
            seen.extend(rows(Mirror(mirror.folder), "SELECT count(*) FROM messages"))

    sync(mirror, server, on_progress=tell)
    assert len(seen) > 5
    assert set(seen) == {(before,)}
    assert rows(mirror, "SELECT count(*) FROM messages") == [(before + 10,)]
    # A relation keeps to the snapshot it was made on.
    assert held_open.fetchall() == [(before,)]


def test_reader_never_sees_half_a_snapshot(mirror):
    world = World(seed=9, users=30, messages_per_user=(5, 20))
    states: set[tuple[int, int, int]] = set()
    failures: list[BaseException] = []
    ended = threading.Event()

    def read() -> None:
        reader = Mirror(mirror.folder)
        query = (
            "SELECT (SELECT max(run_id) FROM runs), (SELECT count(*) FROM messages), "
            "(SELECT sum(messages) FROM conversations)::BIGINT"
        )
        while not ended.is_set():
            try:
                states.update(reader.sql(query).fetchall())
            except BaseException as error:
                failures.append(error)
                return

    expected = set()
    with MockServer(world) as server:
        sync(mirror, server)
        expected.add((1, world.total_messages, world.total_messages))
        thread = threading.Thread(target=read)
        thread.start()
        try:
            for run in range(2, 9):
                for user_id in world.user_ids():
                    world.add_messages(user_id, 1)
                sync(mirror, server)
                expected.add((run, world.total_messages, world.total_messages))
        finally:
            ended.set()
            thread.join()
    assert not failures
    assert states <= expected
    assert len(states) > 1


def test_snapshots_that_were_never_published_are_removed(mirror, server):
    sync(mirror, server)
    directory = mirror.folder / "published"
    # A kill came between the rename of the snapshot and that of the link.
    shutil.copytree(directory / "00000001", directory / "00000099")
    server.world.add_messages(server.world.user_ids()[0], 1)
    sync(mirror, server)
    # The snapshot before stays for readers that have its files open.
    stored = {entry.name for entry in directory.iterdir()}
    assert stored == {"00000001", "00000002", "current"}
    assert (directory / "current").readlink().name == "00000002"


@posix_only
def test_reading_works_in_a_forked_child(mirror, server):
    sync(mirror, server)
    query = "SELECT count(*) FROM messages"
    expected = rows(mirror, query)
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if rows(mirror, query) == expected else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


@posix_only
@pytest.mark.parametrize(
    "ends",
    [
        "sys.exit()",
        "mirror = None; gc.collect(); os._exit(0)",
        "mirror = Mirror(mirror.folder); os._exit(int(mirror.users() != expected))",
        "mirror.users(); sys.exit()",
    ],
)
def test_a_forked_child_ends_well_whatever_it_does_with_the_mirror(mirror, server, ends):
    sync(mirror, server)
    script = f"""if True:
        import gc, os, sys
        from backread.mirror import Mirror as Folder
        class Mirror(Folder):
            def users(self):
                return self.sql("SELECT count(*) FROM users").fetchall()
        mirror = Mirror({str(mirror.folder)!r})
        expected = mirror.users()
        pid = os.fork()
        if pid == 0:
            {ends}
        print(os.waitpid(pid, 0)[1])
        """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


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
