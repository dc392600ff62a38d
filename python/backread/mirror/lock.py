"""One sync of a folder at a time: an operating system's lock, which dies with its process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from backread.errors import MirrorError

__all__ = ["LOCK_NAME", "writer_lock"]

LOCK_NAME = "sync.lock"


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; `MirrorError` at once, with the holder's pid, where another does."""
    with (folder / LOCK_NAME).open("a+b") as file:
        if not _try_lock(file):
            raise MirrorError(
                f"the mirror in {folder} is being synced by {_holder(file)}; "
                "wait for it to end, or end it, and sync again"
            )
        try:
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            file.flush()
            yield
        finally:
            file.truncate(0)
            _unlock(file)


def _holder(file: IO[bytes]) -> str:
    # Windows refuses to read a locked file.
    try:
        file.seek(0)
        pid = file.read(32).decode("ascii", "replace").strip()
    except OSError:
        pid = ""
    if pid == str(os.getpid()):
        return f"this process (pid {pid})"
    return f"another process (pid {pid})" if pid else "another process"


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        # A byte far behind the pid, so that others can read the pid.
        file.seek(1 << 20)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(1 << 20)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
