"""Two syncs of one folder at once: the second is refused, and told who holds it and since when."""

import errno
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import pytest

from backread import MirrorError
from mirrors import BatchSource, batch, rows

pytest.importorskip("duckdb")

from backread.mirror import Mirror, SyncProgress, lock

posix_only = pytest.mark.skipif(os.name == "nt", reason="a locked file cannot be read there")


@contextmanager
def held_by(mirror: Mirror, written: bytes) -> Iterator[None]:
    """The lock as another process holds it, with this in its file."""
    import fcntl

    mirror.folder.mkdir(exist_ok=True)
    with (mirror.folder / lock.LOCK_NAME).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(written)
        file.flush()
        yield


def refusal(mirror: Mirror) -> str:
    source = BatchSource(batch([{"id": 1}], swept="snapshot"))
    with pytest.raises(MirrorError) as caught:
        source.sync_into(mirror.folder)
    assert source.known is None
    return str(caught.value)


@posix_only
def test_holder_is_told_with_its_start(mirror):
    said: list[str] = []

    def tell(now: SyncProgress) -> None:
        said.append(refusal(mirror))

    BatchSource(batch([{"id": 1}])).sync_into(mirror.folder, on_progress=tell)
    found = re.search(r"this process \(pid (\d+), since (\S+ \S+) UTC\)", said[0])
    assert found
    assert int(found[1]) == os.getpid()
    since = datetime.fromisoformat(f"{found[2]}+00:00")
    assert timedelta(0) <= datetime.now(UTC) - since < timedelta(minutes=1)
    assert "try again" in said[0]
    # It is free again afterwards, and names nobody.
    assert (mirror.folder / lock.LOCK_NAME).read_bytes() == b""
    BatchSource(batch([{"id": 1}])).sync_into(mirror.folder)


@posix_only
def test_holder_on_another_machine_is_told_with_its_name(mirror):
    signature = {"pid": 4321, "host": "night-job", "since": "2026-03-01T02:00:00+01:00"}
    with held_by(mirror, json.dumps(signature).encode()):
        said = refusal(mirror)
    assert "a process on the machine night-job (pid 4321, since 2026-03-01 01:00:00 UTC)" in said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has PID namespaces")
@pytest.mark.parametrize("pid", [os.getpid(), 2**31 - 1], ids=["pid of this one", "pid of no one"])
def test_holder_in_another_container_of_the_same_hostname_is_told_as_such(mirror, pid):
    # Of older versions, which did not write it.
    signature = {"pid": pid, "host": socket.gethostname(), "since": "2026-03-01T02:00:00+01:00"}
    with held_by(mirror, json.dumps(signature).encode()):
        assert "container" not in refusal(mirror)
    signature["pid_namespace"] = str(lock.PID_NAMESPACE.readlink())
    with held_by(mirror, json.dumps(signature).encode()):
        assert "container" not in refusal(mirror)
    signature["pid_namespace"] = "pid:[1]"
    with held_by(mirror, json.dumps(signature).encode()):
        said = refusal(mirror)
    assert f"by a process in another container (pid {pid}, since 2026-03-01 01:00:00 UTC)" in said


@posix_only
def test_holder_that_was_killed_after_a_fork_is_told_as_such(mirror):
    """The lock stays with the fork, which the file does not name."""
    mirror.folder.mkdir()
    ended = os.fork()
    if ended == 0:
        os._exit(0)
    os.waitpid(ended, 0)
    signature = {"pid": ended, "host": socket.gethostname(), "since": "2026-03-01T02:00:00+01:00"}
    with held_by(mirror, json.dumps(signature).encode()):
        said = refusal(mirror)
    assert (
        f"is being synced by a process that has ended (pid {ended}, since 2026-03-01 01:00:00 "
        "UTC); one forked from it may hold the lock; wait for it to end"
    ) in said
    signature["pid"] = os.getppid()
    with held_by(mirror, json.dumps(signature).encode()):
        assert f"another process (pid {os.getppid()}, since " in refusal(mirror)


@posix_only
@pytest.mark.parametrize(
    "written",
    [b"", b"4321", b'{"pid": 43', b"\xff\xfe", b'{"pid": null, "host": 1, "since": 2}', b"[]"],
    ids=["nothing", "a pid alone", "a part", "no text", "other types", "a list"],
)
def test_lock_that_does_not_say_by_whom_refuses_all_the_same(mirror, written):
    with held_by(mirror, written):
        assert "being synced by another process; wait" in refusal(mirror)


@posix_only
@pytest.mark.parametrize(
    "written", [b"", b'{"pid": 7, "host": "far", "since": "2026-11-27T10:00Z"}']
)
def test_another_who_writes_the_folder_by_another_mount_ends_the_sync(mirror, written):
    """Locks of sshfs and bindfs hold in one mount only, but the lock's file is one file."""
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)

    def take_over(now: SyncProgress) -> None:
        if now.phase == "reading":
            (mirror.folder / lock.LOCK_NAME).write_bytes(written)

    database = (mirror.folder / "mirror.duckdb").read_bytes()
    source = BatchSource(batch([{"id": 1}, {"id": 2}], swept="snapshot"))
    by = "a process on the machine far" if written else "another process"
    with pytest.raises(
        MirrorError, match=rf"also written by {by}.* mounts of a folder, such as sshfs"
    ):
        source.sync_into(mirror.folder, on_progress=take_over)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]
    # The lock is the other's, and so is the database.
    assert (mirror.folder / lock.LOCK_NAME).read_bytes() == written
    assert (mirror.folder / "mirror.duckdb").read_bytes() == database
    source.sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users ORDER BY 1") == [(1,), (2,)]


@posix_only
def test_a_sync_whose_lock_was_removed_ends(mirror):
    def remove(now: SyncProgress) -> None:
        (mirror.folder / lock.LOCK_NAME).unlink(missing_ok=True)

    source = BatchSource(batch([{"id": 1}], swept="snapshot"))
    with pytest.raises(MirrorError, match=r"its sync.lock was removed"):
        source.sync_into(mirror.folder, on_progress=remove)
    source.sync_into(mirror.folder)


@posix_only
def test_a_lock_that_cannot_be_read_while_it_is_held_holds(mirror, monkeypatch):
    """As on SMB shares, where a lock keeps other handles of the same process from reading, too."""

    def refuse(_: Path) -> IO[bytes]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(lock, "_open", refuse)
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]


@posix_only
def test_nothing_is_published_over_what_another_has_published_by_another_mount(mirror):
    def take_over(now: SyncProgress) -> None:
        if now.phase == "publishing":
            (mirror.folder / lock.LOCK_NAME).write_bytes(b"")

    source = BatchSource(batch([{"id": 1}], swept="snapshot"))
    with pytest.raises(MirrorError, match="also written by"):
        source.sync_into(mirror.folder, on_progress=take_over)
    assert not (mirror.folder / "published" / "current").exists()
    source.sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]


def test_what_a_killed_sync_left_in_the_lock_is_nobody(mirror):
    mirror.folder.mkdir()
    signature = {"pid": 4321, "host": socket.gethostname(), "since": "2026-03-01T02:00:00+00:00"}
    (mirror.folder / lock.LOCK_NAME).write_text(json.dumps(signature))
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]


def test_folder_whose_disk_keeps_no_locks_is_refused(mirror, monkeypatch):
    def no_locks(file: object) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "_try_lock", no_locks)
    assert "does not support locks" in refusal(mirror)


@posix_only
def test_the_holder_is_found_where_only_files_open_for_writing_are_locked(mirror, monkeypatch):
    """As on NFS."""

    def lock_of_nfs(file: IO[bytes]) -> bool:
        if not file.writable():
            raise OSError(errno.EBADF, "Bad file descriptor")
        return False

    mirror.folder.mkdir()
    (mirror.folder / lock.LOCK_NAME).touch()
    monkeypatch.setattr(lock, "_try_lock", lock_of_nfs)
    assert lock.lock_holder(mirror.folder) == "another process"


def test_a_sync_is_not_refused_by_one_who_looks_whether_there_is_one(mirror, monkeypatch):
    tried = iter([False, True])
    monkeypatch.setattr(lock, "_try_lock", lambda _: next(tried))
    monkeypatch.setattr(lock, "_unlock", lambda _: None)
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]
