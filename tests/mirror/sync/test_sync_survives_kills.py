"""Syncs that are killed, interrupted or fail: the mirror stays whole, and the next one resumes."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from backread import ConnectError
from backread.mirror import Mirror, SyncProgress
from backread.testing import MockServer, World
from helpers import CHILDREN
from helpers.command_line import posix_only, settings_of
from helpers.doc_pages import IN_CHECKOUT, ROOT
from helpers.mirrors import BatchSource, batch, missed, rows, sync

CHILD = CHILDREN / "sync_stepwise.py"


@pytest.fixture
def server() -> Iterator[MockServer]:
    """About ten commits' worth of messages."""
    with MockServer(World(seed=5, users=120, messages_per_user=(150, 200))) as running:
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


def holds_exactly(mirror: Mirror, world: World) -> bool:
    """Whether it has the service's rows, and no others."""
    counts = "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM messages)"
    return missed(mirror, world) == [] and rows(mirror, counts) == [
        (len(world.user_ids()), world.total_messages)
    ]


def test_sync_killed_three_times_then_holds_exactly_the_rows(mirror, server, tmp_path):
    whole = sync(Mirror(tmp_path / "whole"), server).requests
    server.forget()
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
    # A kill costs the responses that were not committed: a batch, and what was under way.
    assert sum(server.counts().values()) <= whole + 3 * (64 + 20)
    assert holds_exactly(mirror, server.world)
    assert rows(mirror, "SELECT state, resumptions FROM runs") == [("finished", 3)]
    again = sync(mirror, server)
    assert (again.run_id, again.resumed, again.messages_added) == (2, False, 0)


class InterruptedSyncError(Exception):
    """What a test's callback raises."""


@pytest.mark.parametrize("error", [InterruptedSyncError, ConnectError])
def test_sync_that_raises_keeps_what_it_read(mirror, server, error):
    def tell(now: SyncProgress) -> None:
        if not now.messages:
            return
        if error is InterruptedSyncError:
            raise InterruptedSyncError
        server.stop()

    with server.client(max_retries=0) as client, pytest.raises(error):
        mirror.sync(client, on_progress=tell)
    with MockServer(server.world) as other:
        assert sync(mirror, other).resumed
    assert holds_exactly(mirror, server.world)


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
            for run in range(2, 6):
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
def test_a_forked_child_ends_well_whatever_it_does_with_the_mirror(mirror, ends):
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)
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


@pytest.mark.long
@pytest.mark.skipif(not IN_CHECKOUT, reason="the scripts are in the checkout only")
def test_sync_after_30_kills_equals_a_fresh_sync():
    script = str(ROOT / "benches" / "mirror_kills.py")
    done = subprocess.run(
        [sys.executable, script, "--kills", "30", "--most", "1.2"],
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills 30," in done.stdout
    assert "holds what a fresh mirror holds: yes" in done.stdout
