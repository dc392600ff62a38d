"""Two syncs of one folder at once: the second is refused, and told who holds it and since when."""

import errno
import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import IO

import pytest

from backread import MirrorError
from helpers.mirrors import BatchSource, batch, rows

pytest.importorskip("duckdb")

from backread.mirror import Mirror, SyncProgress
from backread.mirror.store import lock

posix_only = pytest.mark.skipif(os.name == "nt", reason="a locked file cannot be read there")


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


def refusal(mirror: Mirror) -> str:
    source = BatchSource(batch([{"id": 1}], swept="snapshot"))
    with pytest.raises(MirrorError) as caught:
        source.sync_into(mirror.folder)
    assert source.known is None
    return str(caught.value)


@posix_only
def test_sync_refused_by_a_lock_names_its_holder_and_start(mirror):
    said: list[str] = []

    def tell(now: SyncProgress) -> None:
        said.append(refusal(mirror))

    BatchSource(batch([{"id": 1}])).sync_into(mirror.folder, on_progress=tell)
    found = re.search(r"process (\d+), since (\S+ \S+) UTC;", said[0])
    assert found
    assert int(found[1]) == os.getpid()
    since = datetime.fromisoformat(f"{found[2]}+00:00")
    assert timedelta(0) <= datetime.now(UTC) - since < timedelta(minutes=1)
    assert "try again" in said[0]
    # It is free again afterwards, and names nobody.
    assert (mirror.folder / "sync.lock").read_bytes() == b""
    BatchSource(batch([{"id": 1}])).sync_into(mirror.folder)


@posix_only
def test_holder_on_another_machine_is_told_with_its_name(mirror):
    signature = {"pid": 4321, "host": "night-job", "since": "2026-03-01T02:00:00+01:00"}
    with held_by(mirror, json.dumps(signature).encode()):
        said = refusal(mirror)
    assert "process 4321 on the machine night-job, since 2026-03-01 01:00:00 UTC;" in said


@posix_only
@pytest.mark.parametrize(
    "written",
    [b"", b"4321", b'{"pid": 43', b"\xff\xfe", b'{"pid": null, "host": 1, "since": 2}', b"[]"],
    ids=["nothing", "a pid alone", "a part", "no text", "other types", "a list"],
)
def test_lock_that_does_not_say_by_whom_refuses_all_the_same(mirror, written):
    with held_by(mirror, written):
        assert "being synced by another process; wait" in refusal(mirror)


def test_sync_ignores_the_holder_that_a_killed_sync_left(mirror):
    mirror.folder.mkdir()
    signature = {"pid": 4321, "host": socket.gethostname(), "since": "2026-03-01T02:00:00+00:00"}
    (mirror.folder / "sync.lock").write_text(json.dumps(signature))
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
    (mirror.folder / "sync.lock").touch()
    monkeypatch.setattr(lock, "_try_lock", lock_of_nfs)
    assert lock.lock_holder(mirror.folder) == "another process"


def test_sync_tries_the_lock_again_if_it_was_only_probed(mirror, monkeypatch):
    tried = iter([False, True])
    monkeypatch.setattr(lock, "_try_lock", lambda _: next(tried))
    monkeypatch.setattr(lock, "_unlock", lambda _: None)
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]
