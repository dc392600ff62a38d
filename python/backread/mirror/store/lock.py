"""Allows one sync per folder at a time, by an OS file lock, which ends with its process."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import IO

from backread._files.access import open_or_create
from backread._files.json import parse_json
from backread.errors import MirrorError
from backread.mirror.store.folder import LOCK_NAME

__all__ = ["lock_holder", "writer_lock"]

MOST_BYTES = 4096
LONGEST_HOST = 255
LOCK_TRIES = 3
SECONDS_BETWEEN_TRIES = 0.05


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; if another process has it, raises `MirrorError` that names it.

    Waits at most some tenths of a second. Also raises `MirrorError` if the file system does not
    support locks.
    """
    with open_or_create(folder / LOCK_NAME) as file:
        try:
            held = _lock_soon(file)
        except OSError as error:
            raise MirrorError(
                f"the mirror in {folder}: its file system does not support locks ({error}), "
                "so two syncs could run at once; choose a folder on another file system"
            ) from error
        if not held:
            raise MirrorError(
                f"the mirror in {folder} is being synced by {_holder(file)}; "
                "wait for it to end, or end it, and try again"
            )
        try:
            file.truncate(0)
            file.seek(0)
            file.write(_signature())
            file.flush()
            yield
        finally:
            # This may fail, but the lock must be released.
            with suppress(OSError):
                file.truncate(0)
            _unlock(file)


def lock_holder(folder: Path) -> str | None:
    """The process that is syncing the folder, in words; None if there is none. Writes nothing."""
    try:
        with _open(folder / LOCK_NAME) as file:
            try:
                if not _try_lock(file):
                    return _holder(file)
            except OSError:
                # Without locks, no sync can run.
                return None
            _unlock(file)
    except OSError:
        pass
    return None


def _open(path: Path) -> IO[bytes]:
    try:
        # NFS only locks files that are open for writing.
        return path.open("r+b")
    except OSError:
        return path.open("rb")


def _lock_soon(file: IO[bytes]) -> bool:
    """Locks it; tries again for a moment, because `lock_holder` takes the lock to find it free."""
    for _ in range(LOCK_TRIES):
        if _try_lock(file):
            return True
        sleep(SECONDS_BETWEEN_TRIES)
    return _try_lock(file)


def _signature() -> bytes:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _holder(file: IO[bytes]) -> str:
    try:
        # Windows refuses to read a locked file, and a lock just taken may not name its owner yet.
        file.seek(0)
        written = parse_json(file.read(MOST_BYTES))
        pid, host = int(written["pid"]), str(written["host"])[:LONGEST_HOST]
        since = datetime.fromisoformat(written["since"]).astimezone(UTC)
    # The content is untrusted: numbers may be too large, or brackets nested too deeply.
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return "another process"
    elsewhere = "" if host == socket.gethostname() else f" on the machine {host}"
    return f"process {pid}{elsewhere}, since {since:%Y-%m-%d %H:%M:%S} UTC"


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        # Locks a byte far beyond the pid, so that others can read the pid.
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
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
