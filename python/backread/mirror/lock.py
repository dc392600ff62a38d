"""One sync of a folder at a time: an operating system's lock, which dies with its process."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from backread._files.access import open_or_create
from backread._files.json import parse_json
from backread.errors import MirrorError

__all__ = ["LOCK_NAME", "writer_lock"]

LOCK_NAME = "sync.lock"
MOST_BYTES = 4096
LONGEST_HOST = 255


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; `MirrorError` at once, which says who holds it, where another does.

    `MirrorError` too where the file system keeps no locks.
    """
    with open_or_create(folder / LOCK_NAME) as file:
        try:
            held = _try_lock(file)
        except OSError as error:
            raise MirrorError(
                f"the mirror in {folder}: its file system keeps no locks ({error}), so nothing "
                "would stop two syncs at once; choose a folder on another one"
            ) from error
        if not held:
            raise MirrorError(
                f"the mirror in {folder} is being synced by {_holder(file)}; "
                "wait for it to end, or end it, and sync again"
            )
        try:
            file.truncate(0)
            file.seek(0)
            file.write(json.dumps(_signature()).encode())
            file.flush()
            yield
        finally:
            # On a full disk too the lock goes, and with it what was written there.
            with suppress(OSError):
                file.truncate(0)
            _unlock(file)


def _signature() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def _holder(file: IO[bytes]) -> str:
    try:
        # Windows refuses to read a locked file; one just taken may not say yet who took it.
        file.seek(0)
        written = parse_json(file.read(MOST_BYTES))
        pid, host = int(written["pid"]), str(written["host"])[:LONGEST_HOST]
        since = datetime.fromisoformat(written["since"]).astimezone(UTC)
    # Whatever can write there may have; too large a number, or too many brackets.
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return "another process"
    details = f"pid {pid}, since {since:%Y-%m-%d %H:%M:%S} UTC"
    if host != socket.gethostname():
        return f"a process on the machine {host} ({details})"
    return f"this process ({details})" if pid == os.getpid() else f"another process ({details})"


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
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
