"""Syncs that are killed, interrupted or fail: the mirror stays whole, and the next one resumes."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from backread import ConnectError
from backread.mirror import Mirror, SyncProgress
from backread.testing import MockServer, World
from helpers import CHILDREN
from helpers.command_line import posix_only
from helpers.doc_pages import IN_CHECKOUT, ROOT
from helpers.mirrors import BatchSource, batch, missed, rows, sync
from helpers.python_process import check_silent, environment, run

CHILD = CHILDREN / "sync_stepwise.py"


@pytest.fixture
def server() -> Iterator[MockServer]:
    """About ten commits' worth of messages."""
    with MockServer(World(seed=5, users=120, messages_per_user=(150, 200))) as running:
        yield running


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
        # It tells its progress after each commit, and waits for a line; see sync_stepwise.py.
        with subprocess.Popen(
            [sys.executable, str(CHILD), str(mirror.folder), "incremental"],
            env=environment(server),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(commits):
                phase, *_, requests = json.loads(process.stdout.readline())
                assert phase == "reading"
                process.stdin.write("\n")
                process.stdin.flush()
            # Each run goes on from what the one before it had committed.
            assert requests >= committed
            committed = requests
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


@pytest.mark.parametrize("error", [ZeroDivisionError, ConnectError])
def test_sync_that_raises_keeps_what_it_read(mirror, server, error):
    def tell(now: SyncProgress) -> None:
        if now.messages and error is ZeroDivisionError:
            raise ZeroDivisionError
        if now.messages:
            server.stop()

    with server.client(max_retries=0) as client, pytest.raises(error):
        mirror.sync(client, on_progress=tell)
    with MockServer(server.world) as other:
        assert sync(mirror, other).resumed
    assert holds_exactly(mirror, server.world)


@posix_only
@pytest.mark.parametrize(
    "ends",
    [
        "mirror = None; gc.collect(); os._exit(0)",
        "os._exit(int(users(Mirror(mirror.folder)) != expected))",
        "users(mirror); sys.exit()",
    ],
)
def test_a_forked_child_ends_well_whatever_it_does_with_the_mirror(mirror, backread_server, ends):
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)
    script = f"""
        import gc, os, sys
        from backread.mirror import Mirror

        def users(mirror):
            return mirror.sql("FROM users").fetchall()

        mirror = Mirror({str(mirror.folder)!r})
        expected = users(mirror)
        pid = os.fork()
        if pid == 0:
            {ends}
        print(os.waitpid(pid, 0)[1])
    """
    check_silent(run(script, backread_server, "-W", "ignore"), "0")


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
