"""What the folder of a mirror may be, and what is said where it cannot be one."""

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from backread import MirrorBusyError, MirrorError
from backread._files import lock
from backread.mirror import Mirror, SyncProgress
from backread.mirror.published.manifest import DataFile, Manifest
from backread.mirror.published.views import PUBLISHED_TABLES
from backread.mirror.store.engine import named_errors
from backread.mirror.store.schema import FORMAT, create_statements
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, batch, leave_torn_log, rows, sync

USERS = 10


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


def test_nothing_published_says_to_sync(mirror):
    for read in (lambda: mirror.sql("SELECT 1"), lambda: mirror.conversation(1)):
        with pytest.raises(MirrorError, match=r"nothing is published.*sync"):
            read()
    assert not mirror.folder.exists()


def test_a_file_in_place_of_the_folder_is_called_a_file(tmp_path):
    (tmp_path / "chats.txt").touch()
    with pytest.raises(MirrorError, match=r"chats\.txt is a file, but a mirror is a folder"):
        Mirror(tmp_path / "chats.txt").sql("SELECT 1")


@posix_only
def test_a_link_to_nowhere_is_called_one(tmp_path, server):
    (tmp_path / "chats").symlink_to(tmp_path / "disk")
    with pytest.raises(MirrorError, match=r"chats is a symbolic link to .*disk.* create that"):
        sync(Mirror(tmp_path / "chats"), server)


def test_mirror_sync_into_the_root_of_a_volume_says_to_use_a_folder_in_it(tmp_path, server):
    (tmp_path / "lost+found").mkdir()
    with pytest.raises(
        MirrorError, match=r"\(lost\+found\); .*, or use a folder in it, such as "
    ) as caught:
        sync(Mirror(tmp_path), server)
    assert str(tmp_path / "chats") in str(caught.value)
    sync(Mirror(tmp_path / "chats"), server)


CANNOT_OPEN = 'Cannot open file "/disk full/corrupt/mirror.duckdb": '


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (duckdb.IOException(f"IO Error: {CANNOT_OPEN}Operation not permitted"), "its permissions"),
        (duckdb.IOException(f"IO Error: {CANNOT_OPEN}Too many open files"), "raise its limit"),
        (OSError(errno.EMFILE, "Too many open files", "snapshot.json"), r"raise .* \(ulimit -n"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "the disk is full"),
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


def test_wrong_arguments_are_refused_before_anything_happens(mirror, server):
    with pytest.raises(TypeError, match="AsyncClient"):
        mirror.sync(server.async_client())  # type: ignore[arg-type]
    assert not mirror.folder.exists()


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"max_requests": 0}, ValueError, "max_requests must be 1 or more"),
        ({"max_requests": 10**30}, ValueError, "max_requests must be 1 to"),
        ({"max_requests": "5"}, TypeError, "max_requests must be an int, not str"),
        ({"max_seconds": 0}, ValueError, "max_seconds must be more than 0"),
        ({"max_seconds": float("inf")}, ValueError, "None for no limit, not inf"),
        ({"users": []}, ValueError, "users is empty"),
        ({"users": [-1]}, ValueError, "0 or more"),
        ({"users": ["42"]}, TypeError, r"users\[0\] must be an int, not str"),
        ({"users": [1], "mode": "full"}, ValueError, "mode='full'"),
        ({"mode": "swift"}, ValueError, "incremental"),
        ({"publish": "no"}, TypeError, "publish must be a bool, not str"),
        ({"profile": "x"}, TypeError, r"a str: pass .*probe\(\)"),
        ({"on_progress": 3}, TypeError, r"takes a SyncProgress.* an int"),
        ({"max_request": 5}, TypeError, "did you mean max_requests"),
    ],
)
def test_mirror_sync_refuses_wrong_options(mirror, server, options, error, said):
    with server.client() as client, pytest.raises(error, match=said):
        mirror.sync(client, **options)
    assert not mirror.folder.exists()


def test_folder_that_holds_something_else_is_refused(tmp_path, server):
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "beach.jpg").write_bytes(b"jpeg")
    with pytest.raises(MirrorError, match=r"not a mirror.*beach\.jpg.*empty folder"):
        sync(Mirror(foreign), server)
    with pytest.raises(MirrorError, match="is a file"):
        sync(Mirror(foreign / "beach.jpg"), server)
    assert [entry.name for entry in foreign.iterdir()] == ["beach.jpg"]
    assert sum(server.counts().values()) == 0


def test_damaged_database_is_named(mirror, server):
    mirror.folder.mkdir()
    (mirror.folder / "mirror.duckdb").write_bytes(b"no database" * 1000)
    with pytest.raises(MirrorError, match=r"mirror\.duckdb is damaged.*new folder"):
        sync(mirror, server)


def test_duckdb_that_is_too_old_is_named(mirror, server, monkeypatch):
    monkeypatch.setattr(duckdb, "__version__", "1.4.3")
    with pytest.raises(
        MirrorError,
        match=r"needs DuckDB 2[\d.]* or later, but 1\.4\.3 .*; run: pip install -U duckdb",
    ):
        sync(mirror, server)
    assert not mirror.folder.exists()
    # A pre-release of a later one is not.
    monkeypatch.setattr(duckdb, "__version__", "2.11.0.dev5")
    sync(mirror, server)


def test_database_of_another_kind_is_refused(mirror, server):
    mirror.folder.mkdir()
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        for table in ("users", "messages", "meta"):
            connection.execute(f"CREATE TABLE {table} (id BIGINT)").fetchall()
    with pytest.raises(MirrorError, match="backread did not create"):
        sync(mirror, server)


def test_missing_duckdb_says_what_to_install(mirror, server, monkeypatch):
    import builtins

    real = builtins.__import__

    def without_duckdb(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "duckdb":
            raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_duckdb)
    with pytest.raises(MirrorError, match=r'pip install "backread\[mirror\]"'):
        sync(mirror, server)
    assert not mirror.folder.exists()


OTHERS = [FORMAT - 1, FORMAT + 1]
SHAPE = "29ff"
"""Of what format 7 stores. If it differs, raise `FORMAT` and put the new one here."""


def refused(found: object) -> Any:
    sentence = rf"has format {found}, and this backread reads only format {FORMAT}; sync into a new"
    return pytest.raises(MirrorError, match=sentence)


def fill(folder: Path) -> Mirror:
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(folder)
    return Mirror(folder)


def set_format(mirror: Mirror, number: object) -> None:
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(number)])
    path = mirror.folder / "published" / "current" / "snapshot.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"format": number}))


@pytest.mark.parametrize("number", OTHERS)
def test_a_mirror_of_another_format_is_neither_read_nor_written(mirror, number):
    fill(mirror.folder)
    set_format(mirror, number)
    before = {each: each.read_bytes() for each in mirror.folder.rglob("*") if each.is_file()}
    uses = [lambda: fill(mirror.folder), lambda: mirror.forget(1), lambda: mirror.sql("FROM users")]
    for use in uses:
        with refused(number):
            use()
    assert before == {each: each.read_bytes() for each in before}
    # A killed first sync has published nothing.
    (mirror.folder / "published" / "current").unlink()
    with refused(number):
        fill(mirror.folder)


def test_other_tables_or_another_manifest_are_another_format():
    stored = [*create_statements("id"), PUBLISHED_TABLES, Manifest.__annotations__]
    shape = hashlib.sha256(repr([*stored, DataFile.__annotations__]).encode()).hexdigest()
    assert shape[:4] == SHAPE, "raise FORMAT, since mirrors made before cannot be read"


SOURCE = BatchSource(batch([{"id": 1}], swept="snapshot"))


@contextmanager
def held_by(mirror: Mirror, written: bytes) -> Iterator[None]:
    """The lock as another process holds it, with this in its file."""
    import fcntl

    mirror.folder.mkdir(exist_ok=True)
    with (mirror.folder / "sync.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(written)
        file.flush()
        yield


def refusal(mirror: Mirror, kind: type[MirrorError] = MirrorBusyError) -> str:
    with pytest.raises(kind) as caught:
        SOURCE.sync_into(mirror.folder)
    return str(caught.value)


@posix_only
def test_sync_refused_by_a_lock_names_its_holder_and_start(mirror):
    said: list[str] = []

    def tell(now: SyncProgress) -> None:
        said.append(refusal(mirror))

    SOURCE.sync_into(mirror.folder, on_progress=tell)
    found = re.search(r"synced by process (\d+) on \S+, since (\S+ \S+) UTC; .*try again", said[0])
    assert found
    assert int(found[1]) == os.getpid()
    since = datetime.fromisoformat(f"{found[2]}+00:00")
    assert timedelta(0) <= datetime.now(UTC) - since < timedelta(minutes=1)
    # It is free again afterwards, and names nobody.
    assert (mirror.folder / "sync.lock").read_bytes() == b""
    SOURCE.sync_into(mirror.folder)


@posix_only
@pytest.mark.parametrize("written", [b"", b"\xff\xfe", b"process 1 on \x1b[2J, since"])
def test_lock_that_does_not_say_by_whom_refuses_all_the_same(mirror, written):
    with held_by(mirror, written):
        assert "being synced by another process; wait" in refusal(mirror)


def test_sync_ignores_the_holder_that_a_killed_sync_left(mirror):
    mirror.folder.mkdir()
    left = "process 4321 on night-job, since 2026-03-01 02:00:00 UTC"
    (mirror.folder / "sync.lock").write_text(left)
    SOURCE.sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]


def test_folder_whose_disk_keeps_no_locks_is_refused(mirror, monkeypatch):
    def no_locks(descriptor: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "try_lock", no_locks)
    assert "does not support locks" in refusal(mirror, MirrorError)
