"""Readers and the writer never wait for each other, whoever came first and whose process it is."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backread.mirror import Mirror, SyncProgress
from backread.testing import MockServer, World
from helpers.mirrors import rows, sync

SECONDS = 120

# So many rows that most of them are still in the files when the first ones are there.
COPIES = 50
MANY = f"SELECT messages.*, copy FROM messages, range({COPIES}) AS copies(copy)"

READER = f"""
import sys
import pyarrow as pa
from backread import Mirror
reader = pa.RecordBatchReader.from_stream(Mirror(sys.argv[1]).sql({MANY!r}))
count = len(reader.read_next_batch())
print(count, flush=True)
sys.stdin.readline()
print(count + sum(map(len, reader)), flush=True)
"""


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=5, users=80, messages_per_user=(20, 120))) as running:
        yield running


@pytest.fixture
def mirror(tmp_path: Path, server: MockServer) -> Mirror:
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    return mirror


@contextmanager
def reader_elsewhere(mirror: Mirror) -> Iterator[subprocess.Popen[str]]:
    """A query of another process that has given its first rows, and waits in the midst of them."""
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(mirror.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUTF8": "1"},
    ) as process:
        try:
            assert process.stdout is not None
            assert int(process.stdout.readline()) > 0
            yield process
        finally:
            process.kill()


def test_readers_of_any_process_and_a_sync_do_not_wait_for_each_other(mirror, server):
    before = server.world.total_messages
    # So many changes that every part of the messages is written anew.
    for user_id in server.world.user_ids():
        server.world.add_messages(user_id, 30)
    read: list[Any] = []

    def tell(now: SyncProgress) -> None:
        if now.messages and not read:
            for each in (mirror, Mirror(mirror.folder)):
                read.append(rows(each, "SELECT count(*) FROM messages"))
            read.append(pa.RecordBatchReader.from_stream(mirror.sql(MANY)))
            read.append(len(read[-1].read_next_batch()))

    with reader_elsewhere(mirror) as process:
        sync(mirror, server, on_progress=tell)
        sync(mirror, server, mode="full")
        out, _ = process.communicate("\n", timeout=SECONDS)
    assert int(out) == before * COPIES
    first, second, reader, count = read
    assert first == second == [(before,)]
    # The syncs ended in between; what was open keeps to what it began with.
    assert count + sum(map(len, reader)) == before * COPIES


def test_reader_never_sees_half_a_snapshot(mirror, server):
    states: set[tuple[int, int, int]] = set()
    ended = threading.Event()

    def read() -> None:
        reader = Mirror(mirror.folder)
        query = (
            "SELECT (SELECT max(run_id) FROM runs), (SELECT count(*) FROM messages), "
            "(SELECT sum(messages) FROM conversations)::BIGINT"
        )
        while not ended.is_set():
            states.update(reader.sql(query).fetchall())

    expected = {(1, server.world.total_messages, server.world.total_messages)}
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        try:
            for run in range(2, 6):
                server.world.add_messages(server.world.user_ids()[run], 30)
                sync(mirror, server)
                expected.add((run, server.world.total_messages, server.world.total_messages))
        finally:
            ended.set()
    reading.result()
    assert states <= expected
    assert len(states) > 1
