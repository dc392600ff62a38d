"""What the folder of a mirror may be, and what is said where it cannot be one."""

import errno
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest

from backread import MirrorBusyError, MirrorError
from backread._files import lock
from backread.mirror import Mirror
from backread.mirror.published.manifest import DataFile, Manifest
from backread.mirror.published.views import PUBLISHED_TABLES
from backread.mirror.store.engine import named_errors
from backread.mirror.store.schema import FORMAT, create_statements
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.file_modes import files_below
from helpers.mirrors import BatchSource, batch, leave_torn_log, rows, sync

USERS = 10
SOURCE = BatchSource(batch([{"id": 1}], swept="snapshot"))


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=USERS, messages_per_user=(0, 20))) as running:
        yield running


@pytest.mark.parametrize("name", ["it's [1] 多言語 50%", "day=1"])
def test_folder_may_have_any_name(tmp_path, server, name):
    mirror = Mirror(tmp_path / name / "chats")
    sync(mirror, server)
    assert rows(mirror, "SELECT count(*) FROM users") == [(USERS,)]
    assert "day" not in mirror.sql("SELECT * FROM users").columns


@posix_only
def test_a_link_to_nowhere_is_called_one(tmp_path, server):
    (tmp_path / "chats").symlink_to(tmp_path / "disk")
    with pytest.raises(MirrorError, match=r"chats is a symbolic link to .*disk.* create that"):
        sync(Mirror(tmp_path / "chats"), server)


def test_mirror_sync_into_the_root_of_a_volume_says_to_use_a_folder_in_it(tmp_path, server):
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
    assert rows(mirror, "SELECT count(*) FROM users") == [(USERS,)]


def test_a_database_that_was_deleted_is_not_begun_anew(mirror, server):
    """What is published may have deleted rows, which the service shows no more."""
    sync(mirror, server)
    (mirror.folder / "mirror.duckdb").unlink()
    with pytest.raises(MirrorError, match=r"has lost its mirror\.duckdb; .* a new folder"):
        sync(mirror, server)
    assert rows(mirror, "SELECT count(*) FROM users") == [(USERS,)]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_requests": 0}, ValueError, "max_requests must be 1 or more"),
        ({"max_requests": "5"}, TypeError, "max_requests must be an int, not str"),
        ({"max_seconds": float("inf")}, ValueError, "None for no limit, not inf"),
        ({"users": []}, ValueError, "users is empty"),
        ({"users": ["42"]}, TypeError, r"users\[0\] must be an int, not str"),
        ({"users": [1], "mode": "full"}, ValueError, "mode='full'"),
        ({"mode": "swift"}, ValueError, "incremental"),
        ({"profile": "x"}, TypeError, r"a str: pass .*probe\(\)"),
        ({"on_progress": 3}, TypeError, r"takes a SyncProgress.* an int"),
        ({"max_request": 5}, TypeError, "did you mean max_requests"),
    ],
)
def test_mirror_sync_refuses_wrong_options(mirror, server, options, error, said):
    with server.client() as client, pytest.raises(error, match=said):
        mirror.sync(client, **options)
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
    photo.rename(mirror.folder / "mirror.duckdb")
    with pytest.raises(MirrorError, match=r"mirror\.duckdb is damaged.*new folder"):
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


SHAPE = "29ff"
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
