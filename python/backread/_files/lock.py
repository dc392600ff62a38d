"""One exclusive lock of a file, by the operating system, which ends with its process."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

from backread._files.access import RefusedFileError, open_or_create

__all__ = ["HeldError", "hold", "holder_of", "try_lock", "unlock"]

HOLDER = re.compile(r"process \d{1,10} on [\w.-]{1,255}, since [\d: -]{19} UTC")
"""What the file of a held lock says; other content is not repeated."""

MOST_BYTES = 400
TRIES = 4
SECONDS_BETWEEN_TRIES = 0.05


class HeldError(Exception):
    """Another process has the lock; the text names it, such as ``process 4321 on host, since …``"""


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Holds the lock of this file, which is created if it is missing, during the block.

    Waits some tenths of a second, because `holder_of` takes the lock to find it free.

    Raises:
        HeldError: Another process has it.
        RefusedFileError: The file system has no locks.
    """
    with open_or_create(path) as file:
        tries = TRIES
        try:
            while not try_lock(file.fileno()):
                tries -= 1
                if not tries:
                    raise HeldError(_read_holder(file.fileno()))
                sleep(SECONDS_BETWEEN_TRIES)
        except OSError as error:
            raise RefusedFileError(
                f"the file system of {path} does not support locks ({error}), so two processes "
                "could write at once; choose a folder on another file system"
            ) from error
        try:
            file.truncate(0)
            now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            file.write(f"process {os.getpid()} on {socket.gethostname()}, since {now}".encode())
            file.flush()
            yield
        finally:
            # This may fail, but the lock must be released.
            with suppress(OSError):
                file.truncate(0)
            unlock(file.fileno())


def holder_of(path: Path) -> str | None:
    """The process that has the lock of this file, in words; None if there is none."""
    try:
        # NFS only locks files that are open for writing.
        with path.open("r+b" if os.access(path, os.W_OK) else "rb") as file:
            if not try_lock(file.fileno()):
                return _read_holder(file.fileno())
            unlock(file.fileno())
    except OSError:
        # Without the file, or without locks, no process has it.
        pass
    return None


def _read_holder(descriptor: int) -> str:
    try:
        # Windows refuses to read a locked file, and a lock just taken may not name its owner yet.
        os.lseek(descriptor, 0, os.SEEK_SET)
        found = HOLDER.fullmatch(os.read(descriptor, MOST_BYTES).decode("utf-8", "replace"))
    except OSError:
        found = None
    return found[0] if found else "another process"


if sys.platform == "win32":
    import msvcrt

    # Far beyond the text, so that others can read it.
    LOCKED_BYTE = 1 << 20

    def try_lock(descriptor: int) -> bool:
        """Takes the lock of an open file; False if another process has it."""
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True

    def unlock(descriptor: int) -> None:
        """Releases the lock."""
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Takes the lock of an open file or folder; False if another process has it.

        Raises OSError if the file system has no locks.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Releases the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
