"""Signals while a mirror is written or read: what a handler raises comes out, at any moment."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.mirrors import BatchSource, batch, rows
from helpers.waiting import PATIENCE

pytest.importorskip("duckdb")

from backread.mirror import Mirror
from backread.mirror.store.engine import connect, named_errors, rows_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such timers")

NUMBERS = "range(10_000_000::BIGINT)"
ENDLESS = f"SELECT count(*) FROM {NUMBERS} a, {NUMBERS} b WHERE a.range < b.range"
MOMENTS = 24


class TaskEndedError(BaseException):
    """As a task runner ends a task."""


@contextmanager
def handled(error: BaseException) -> Iterator[Callable[[float], None]]:
    """The handler of a timer raises the error; gives what sets the timer, in seconds."""

    def handle(*_: Any) -> None:
        raise error

    def alarm(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        yield alarm
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def source() -> BatchSource:
    """Two commits of a hundred users and a thousand messages."""
    batches = []
    for start in range(1, 201, 100):
        users = range(start, start + 100)
        batches.append(
            batch(
                [{"id": each, "name": f"user {each}"} for each in users],
                [{"user_id": each, "id": 10 * each + n} for each in users for n in range(10)],
                lists=dict.fromkeys(users, "snapshot"),
            )
        )
    return BatchSource(*batches, batch(swept="snapshot"))


@pytest.mark.long
def test_what_a_handler_raises_comes_out_of_a_sync_at_any_moment(tmp_path):
    kinds = (TaskEndedError, SystemExit, ValueError)
    # The second time: the first one also imports.
    source().sync_into(tmp_path / "first")
    began = time.monotonic()
    source().sync_into(tmp_path / "second")
    whole = time.monotonic() - began
    ended = 0
    for moment in range(MOMENTS):
        folder = tmp_path / str(moment)
        error = kinds[moment % len(kinds)]("now")
        caught: list[BaseException] = []
        with handled(error) as alarm:
            alarm(whole * (moment + 1) / MOMENTS)
            try:
                source().sync_into(folder)
                alarm(0)
            except BaseException as raised:
                caught = [raised]
        # It may have come too late.
        assert caught in ([error], [])
        ended += len(caught)
        source().sync_into(folder)
        assert rows(Mirror(folder), "SELECT count(*), count(DISTINCT id) FROM messages") == [
            (2_000, 2_000)
        ]
    assert ended


@pytest.mark.parametrize("kind", [TaskEndedError, TimeoutError])
def test_what_a_handler_raises_ends_a_statement_at_once(kind):
    connection, error = connect(None), kind("too long")
    with handled(error) as alarm:
        began = time.monotonic()
        alarm(0.1)
        with pytest.raises(kind) as caught, named_errors(Path("chats")):
            rows_of(connection, ENDLESS)
    assert caught.value is error
    assert time.monotonic() - began < PATIENCE
    # The connection is free again.
    assert rows_of(connection, "SELECT 1") == [(1,)]
    connection.close()


def test_handler_may_query_another_mirror_while_a_statement_runs():
    connection, other = connect(None), connect(None)
    seen: list[Any] = []

    def handle(*_: Any) -> None:
        seen.extend(rows_of(other, "SELECT 42"))

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        assert rows_of(connection, "SELECT sum(hash(range)) > 0 FROM range(100_000_000)")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [(42,)]
    for each in (connection, other):
        each.close()


def test_statement_in_another_thread_is_left_alone():
    """Handlers run in the main thread, so there is nothing to do."""
    connection = connect(None)
    seen: list[Any] = []
    query = "SELECT 1 WHERE (SELECT sum(hash(range)) FROM range(100_000_000)) > 0"
    thread = threading.Thread(target=lambda: seen.extend(rows_of(connection, query)))
    error = TaskEndedError("now")
    with handled(error) as alarm:
        thread.start()
        alarm(0.02)
        with pytest.raises(TaskEndedError):
            time.sleep(PATIENCE)
    thread.join()
    assert seen == [(1,)]
    connection.close()


@pytest.mark.parametrize("earlier", [False, True], ids=["first query", "later query"])
def test_mirror_can_be_read_when_the_interpreter_exits(tmp_path, earlier):
    BatchSource(batch([{"id": 7}], swept="snapshot")).sync_into(tmp_path)
    code = f"""
import atexit
from backread.mirror import Mirror
table = Mirror({str(tmp_path)!r}).table("users")
if {earlier}:
    assert table.num_rows == 1
atexit.register(lambda: print(table.num_rows))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
