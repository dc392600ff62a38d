"""Readers and the writer never wait for each other, whoever came first and whose process it is."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=5, users=80, messages_per_user=(20, 120))) as running:
        yield running


@pytest.fixture
def mirror(tmp_path: Path, server: MockServer) -> Mirror:
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    return mirror


def change(server: MockServer) -> None:
    """So many changes that every part of the messages is written anew."""
    for user_id in server.world.user_ids():
        server.world.add_messages(user_id, 30)


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


def rest(process: subprocess.Popen[str]) -> int:
    out, _ = process.communicate("\n", timeout=SECONDS)
    return int(out)


def test_query_in_another_process_neither_waits_nor_is_waited_for(mirror, server):
    before = server.world.total_messages
    with reader_elsewhere(mirror) as process:
        change(server)
        sync(mirror, server)
        sync(mirror, server, mode="full")
        assert rest(process) == before * COPIES


def test_readers_go_on_while_a_sync_stands_in_the_midst_of_its_work(mirror, server):
    before = server.world.total_messages
    held, go_on = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def tell(now: SyncProgress) -> None:
        if now.messages:
            held.set()
            assert go_on.wait(SECONDS)

    def write() -> None:
        try:
            sync(Mirror(mirror.folder), server, on_progress=tell)
        except BaseException as error:
            failures.append(error)

    change(server)
    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert held.wait(SECONDS)
        read: list[Any] = [rows(mirror, "SELECT count(*) FROM messages")]
        read.append(rows(Mirror(mirror.folder), "SELECT count(*) FROM messages"))
        reader = pa.RecordBatchReader.from_stream(mirror.sql(MANY))
        count = len(reader.read_next_batch())
    finally:
        go_on.set()
        thread.join()
    assert not failures
    assert read == [[(before,)]] * 2
    # The sync ended in between; what was open keeps to what it began with.
    assert count + sum(map(len, reader)) == before * COPIES
