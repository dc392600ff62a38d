"""Readers of the snapshot: by path, by the views of ``chats.duckdb``, and during a sync."""

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backread import MirrorError
from backread.mirror import Mirror, SyncProgress
from backread.testing import MockServer, World
from helpers.file_modes import largest_file, posix_only
from helpers.mirrors import BatchSource, Row, batch, ended, rows, sync
from helpers.python_process import check_silent, run
from helpers.waiting import PATIENCE

pytest.importorskip("polars")
pytest.importorskip("pandas")

import duckdb
import pandas
import polars
import pyarrow.dataset

from backread.mirror.published import publish

VIEWS = ("users", "messages", "conversations", "lists", "rejects", "runs")
USERS = range(30)
PER_USER = 40

WRITER = """
import sys
from backread.mirror import Mirror
from backread.mirror.published import publish
from backread.testing import MockServer, World

publish.FILE_BYTES = 40_000
world = World(seed=1, users=30, messages_per_user=40)
with MockServer(world) as server, server.client() as client:
    while True:
        Mirror(sys.argv[1]).sync(client)
        print(world.total_users, flush=True)
        world.add_users(1)
"""


def said() -> list[Row]:
    return [
        {"user_id": user, "id": user * 1000 + each, "body": f"text {each}", "sender_type": "user"}
        for user in USERS
        for each in range(PER_USER)
    ]


def fill(mirror: Mirror, *kinds: str) -> None:
    """Publishes the messages; the users' lists are of these kinds in turn."""
    lists = [ended(each, kind=kinds[each % len(kinds)]) for each in USERS] if kinds else ()
    users = [{"id": each} for each in USERS]
    BatchSource(batch(users, said(), swept="snapshot", lists=lists)).sync_into(mirror.folder)


def current(mirror: Mirror) -> Path:
    return mirror.folder / "published" / "current"


def by_duckdb(snapshot: Path) -> tuple[int, int]:
    files = str(snapshot / "messages" / "*.parquet")
    with duckdb.connect() as connection:
        # Both scans are of one snapshot.
        [found] = connection.execute(
            "SELECT (SELECT count(DISTINCT user_id) FROM read_parquet(?)), "
            "(SELECT count(*) FROM read_parquet(?))",
            [files, files],
        ).fetchall()
    return found


def by_views(snapshot: Path) -> tuple[int, int]:
    with duckdb.connect(str(snapshot.parent.parent / "chats.duckdb"), read_only=True) as views:
        # Both tables are of one snapshot.
        query = "SELECT count(*), sum(messages)::BIGINT FROM conversations"
        [found] = views.execute(query).fetchall()
    return found


def by_polars(snapshot: Path) -> tuple[int, int]:
    frame = polars.scan_parquet(snapshot / "messages" / "*.parquet").select("user_id").collect()
    return frame["user_id"].n_unique(), frame.height


def by_pandas(snapshot: Path) -> tuple[int, int]:
    frame = pandas.read_parquet(snapshot / "messages")
    return frame["user_id"].nunique(), len(frame)


def by_pyarrow(snapshot: Path) -> tuple[int, int]:
    table = pyarrow.dataset.dataset(snapshot / "messages").to_table(columns=["user_id"])
    return len(table["user_id"].unique()), table.num_rows


def by_mirror(snapshot: Path) -> tuple[int, int]:
    query = "SELECT count(*), sum(messages)::BIGINT FROM conversations"
    [found] = rows(Mirror(snapshot.parent.parent), query)
    return found


READERS = (by_mirror, by_duckdb, by_views, by_polars, by_pandas, by_pyarrow)


def test_parquet_by_path_has_each_row_once(mirror):
    fill(mirror)
    for read in READERS:
        assert read(current(mirror)) == (len(USERS), len(USERS) * PER_USER), read


def not_found(error: Exception) -> bool:
    """Whether a reader says that a file it had listed is gone.

    pyarrow leaves such files out, and no file of the snapshot is left, so it has no columns.
    """
    text = str(error).lower()
    words = ("no such file", "no files found", "could not find", "no match for fieldref.name")
    return (
        isinstance(error, FileNotFoundError)
        or any(each in text for each in words)
        or (isinstance(error, KeyError) and error.args == ("user_id",))
    )


@posix_only
@pytest.mark.parametrize(
    ("read", "resolved"),
    [
        (by_mirror, False),
        *(pytest.param(read, False, marks=pytest.mark.long) for read in READERS[1:]),
        *(pytest.param(read, True, marks=pytest.mark.long) for read in READERS[1:]),
    ],
)
def test_read_during_publications_is_one_version_or_a_clear_error(mirror, read, resolved):
    seen: set[tuple[int, int]] = set()
    command = [sys.executable, "-c", WRITER, str(mirror.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            began = time.monotonic()
            while (passed := time.monotonic() - began) < 4 or (len(seen) < 2 and passed < PATIENCE):
                try:
                    seen.add(read(current(mirror).resolve() if resolved else current(mirror)))
                except Exception as error:
                    is_open = read is by_mirror or (resolved and read is not by_views)
                    if is_open or not not_found(error):
                        raise
            assert process.poll() is None
        finally:
            process.kill()
    # Each of its versions has another user, with 40 messages.
    assert {messages for _, messages in seen} == {users * PER_USER for users, _ in seen}
    assert len(seen) == len({users for users, _ in seen}) > 1


def test_duckdb_views_have_the_rows_of_the_mirror(mirror):
    fill(mirror, "whole", "end", "partial")
    # Its header has the storage version: 64 is that of DuckDB 1.0, the first stable one.
    assert (mirror.folder / "chats.duckdb").read_bytes()[8:14] == b"DUCK\x40\0"
    with duckdb.connect(str(mirror.folder / "chats.duckdb"), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in VIEWS:
            query = f"SELECT COLUMNS(*)::VARCHAR FROM {name} ORDER BY ALL"
            ours, theirs = mirror.sql(query), connection.sql(query)
            assert theirs.columns == ours.columns
            assert theirs.fetchall() == ours.fetchall(), name


def test_the_views_are_written_only_when_they_change(mirror, tmp_path):
    fill(mirror)
    views = mirror.folder / "chats.duckdb"
    before = views.stat().st_ino
    fill(mirror)
    assert views.stat().st_ino == before
    views.unlink()
    fill(mirror)
    assert by_views(current(mirror)) == (len(USERS), len(USERS) * PER_USER)
    # Moved, it names another folder.
    moved = Mirror(shutil.move(mirror.folder, tmp_path / "moved it's [1]"))
    fill(moved)
    assert by_views(current(moved)) == (len(USERS), len(USERS) * PER_USER)


def test_a_program_that_has_the_views_open_does_not_stop_a_sync(mirror):
    fill(mirror)
    with duckdb.connect(str(mirror.folder / "chats.duckdb")) as connection:
        query = "SELECT count(*) FROM messages"
        before = connection.execute(query).fetchall()
        users = [{"id": each} for each in USERS]
        more = [*said(), {"user_id": 1, "id": 1}]
        BatchSource(batch(users, more, swept="snapshot")).sync_into(mirror.folder)
        assert connection.execute(query).fetchall() == [(before[0][0] + 1,)]


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("again", [False, True])
def test_where_there_are_no_links_a_file_names_the_snapshot(mirror, monkeypatch, again):
    if again:
        fill(mirror)
    with monkeypatch.context() as lacking:
        lacking.setattr(Path, "symlink_to", refuse)
        lacking.setattr(os, "link", refuse)
        for _ in range(2):
            fill(mirror)
            published = mirror.folder / "published"
            name = (published / "CURRENT").read_text().strip()
            assert not (published / "current").is_symlink()
            assert rows(mirror, "SELECT count(*) FROM messages") == [(len(USERS) * PER_USER,)]
            assert by_views(current(mirror)) == (len(USERS), len(USERS) * PER_USER)
            assert len(list((published / name / "messages").iterdir())) == 1
    fill(mirror)
    assert not (published / "CURRENT").exists()
    assert by_duckdb(current(mirror)) == (len(USERS), len(USERS) * PER_USER)


@posix_only
def test_full_disk_while_publishing_leaves_no_file_and_the_next_sync_publishes(mirror, monkeypatch):
    fill(mirror)
    before = sorted(each.name for each in (mirror.folder / "published").iterdir())
    wide = [{"user_id": 1, "id": each, "body": os.urandom(50_000).hex()} for each in range(50)]
    source = BatchSource(batch([{"id": 1}], wide, swept="uncertified"))
    write = publish._Snapshot._write

    def limited(*arguments: Any, **options: Any) -> int:
        # DuckDB's own files are larger than this already.
        with largest_file(1_000_000):
            return write(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(publish._Snapshot, "_write", limited)
        with pytest.raises(MirrorError):
            source.sync_into(mirror.folder)
    assert sorted(each.name for each in (mirror.folder / "published").iterdir()) == before
    assert rows(mirror, "SELECT count(*) FROM messages") == [(len(USERS) * PER_USER,)]
    BatchSource(batch([{"id": 1}], swept="uncertified")).sync_into(mirror.folder)
    assert rows(mirror, "SELECT count(*) FROM messages") == [(len(USERS) * PER_USER + 50,)]


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


# --- during a sync --------------------------------------------------------------------------------


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
def synced(mirror: Mirror, server: MockServer) -> Mirror:
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


def test_readers_of_any_process_and_a_sync_do_not_wait_for_each_other(synced, server):
    before = server.world.total_messages
    # So many changes that every part of the messages is written anew.
    for user_id in server.world.user_ids():
        server.world.add_messages(user_id, 30)
    read: list[Any] = []

    def tell(now: SyncProgress) -> None:
        if now.messages and not read:
            for each in (synced, Mirror(synced.folder)):
                read.append(rows(each, "SELECT count(*) FROM messages"))
            read.append(pa.RecordBatchReader.from_stream(synced.sql(MANY)))
            read.append(len(read[-1].read_next_batch()))

    with reader_elsewhere(synced) as process:
        sync(synced, server, on_progress=tell)
        sync(synced, server, mode="full")
        out, _ = process.communicate("\n", timeout=PATIENCE)
    assert int(out) == before * COPIES
    first, second, reader, count = read
    assert first == second == [(before,)]
    # The syncs ended in between; what was open keeps to what it began with.
    assert count + sum(map(len, reader)) == before * COPIES
