"""What the folder of a mirror may be, and what is said where it cannot be one."""

import errno
import os
from collections.abc import Iterator
from typing import Any

import pytest

from backread import MirrorError
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.mirrors import leave_torn_log, rows, sync

pytest.importorskip("duckdb")

import duckdb

from backread.mirror import Mirror
from backread.mirror.store.engine import named_errors

USERS = 10


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=USERS, messages_per_user=(0, 20))) as running:
        yield running


@pytest.mark.parametrize("name", ["a b", "it's", "[1]", "day=1", "多言語", "50%"])
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


def test_mirror_sync_into_the_root_of_a_volume_says_to_use_a_folder_in_it(tmp_path, server):
    (tmp_path / "lost+found").mkdir()
    with pytest.raises(
        MirrorError, match=r"\(lost\+found\); .*, or use a folder in it, such as "
    ) as caught:
        sync(Mirror(tmp_path), server)
    assert str(tmp_path / "chats") in str(caught.value)
    sync(Mirror(tmp_path / "chats"), server)


@posix_only
def test_a_link_to_nowhere_is_called_one(tmp_path, server):
    (tmp_path / "chats").symlink_to(tmp_path / "disk")
    with pytest.raises(MirrorError, match=r"chats is a symbolic link to .*disk.* create that"):
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
    with pytest.raises(TypeError, match="takes a Client"):
        mirror.sync("client")  # type: ignore[arg-type]
    with server.client() as client, pytest.raises(ValueError, match="incremental"):
        mirror.sync(client, mode="swift")  # type: ignore[arg-type]
    with server.client() as client, pytest.raises(TypeError, match=r"a str: pass .*probe\(\)"):
        mirror.sync(client, profile="x")  # type: ignore[arg-type]
    with (
        server.client() as client,
        pytest.raises(TypeError, match=r"takes a SyncProgress.* an int"),
    ):
        mirror.sync(client, on_progress=3)  # type: ignore[arg-type]
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
    import duckdb

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


@pytest.mark.parametrize("tables", [("users",), ("users", "messages", "meta")])
def test_database_of_another_kind_is_refused(mirror, server, tables):
    import duckdb

    mirror.folder.mkdir()
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        for table in tables:
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
