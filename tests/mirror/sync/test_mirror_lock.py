"""Two syncs of one folder at once: the second is refused, and told who holds it and since when."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from backread import MirrorBusyError, MirrorError
from helpers.mirrors import BatchSource, batch, rows

pytest.importorskip("duckdb")

from backread._files import lock
from backread.mirror import Mirror, SyncProgress

posix_only = pytest.mark.skipif(os.name == "nt", reason="a locked file cannot be read there")
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
@pytest.mark.parametrize("written", [b"", b"4321", b"\xff\xfe", b"process 1 on \x1b[2J, since"])
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


def test_sync_tries_the_lock_again_if_it_was_only_probed(mirror, monkeypatch):
    tried = iter([False, True])
    monkeypatch.setattr(lock, "try_lock", lambda _: next(tried))
    monkeypatch.setattr(lock, "unlock", lambda _: None)
    SOURCE.sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM users") == [(1,)]
