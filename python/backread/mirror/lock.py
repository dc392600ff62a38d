"""Allows one sync per folder at a time, by an OS file lock, which ends with its process."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import IO, Any
from uuid import uuid4

from backread._files.access import open_or_create
from backread._files.json import parse_json
from backread.errors import MirrorError

__all__ = ["LOCK_NAME", "WriterLock", "lock_holder", "writer_lock"]

LOCK_NAME = "sync.lock"
MOST_BYTES = 4096
LONGEST_HOST = 255
LOCK_TRIES = 3
SECONDS_BETWEEN_TRIES = 0.05
PID_NAMESPACE = Path("/proc/self/ns/pid")


@dataclass(frozen=True, slots=True)
class WriterLock:
    """The lock of a folder that this process writes."""

    folder: Path
    signature: bytes

    def check(self) -> None:
        """Raises `MirrorError` if another process holds the lock too, or the file was removed.

        The former happens where the folder is mounted twice (sshfs, bindfs): a lock may hold in one
        of the mounts only, but what is written into its file is seen in all.
        """
        try:
            with _open(self.folder / LOCK_NAME) as file:
                if file.read(MOST_BYTES) == self.signature:
                    return
                holder = _holder(file)
        except FileNotFoundError:
            raise MirrorError(
                f"the mirror in {self.folder}: its {LOCK_NAME} was removed during the sync, so "
                "another one may have begun; leave that file there, and try again"
            ) from None
        except OSError:
            # SMB shares refuse to read a locked file, and so their locks hold for all.
            return
        raise MirrorError(
            f"the mirror in {self.folder} was also written by {holder} during the sync: locks do "
            "not hold across mounts of a folder, such as sshfs or bindfs; use one mount only, and "
            "try again"
        )


@contextmanager
def writer_lock(folder: Path) -> Iterator[WriterLock]:
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
        signature = json.dumps(_signature()).encode()
        try:
            file.truncate(0)
            file.seek(0)
            file.write(signature)
            file.flush()
            yield WriterLock(folder, signature)
        finally:
            # This may fail, but the lock must be released.
            with suppress(OSError):
                file.seek(0)
                # Not that of another process, by another mount.
                if file.read(MOST_BYTES) == signature:
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


def _signature() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    namespace = _pid_namespace()
    known = {} if namespace is None else {"pid_namespace": namespace}
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": since,
        **known,
        # Threads of a process may begin in the same second.
        "id": uuid4().hex,
    }


def _pid_namespace() -> str | None:
    """Where this process's pid holds, as ``pid:[4026531836]``; None if the system does not say."""
    try:
        return str(PID_NAMESPACE.readlink())
    except OSError:
        return None


def _holder(file: IO[bytes]) -> str:
    try:
        # Windows refuses to read a locked file, and a lock just taken may not name its owner yet.
        file.seek(0)
        written = parse_json(file.read(MOST_BYTES))
        pid, host = int(written["pid"]), str(written["host"])[:LONGEST_HOST]
        since = datetime.fromisoformat(written["since"]).astimezone(UTC)
        namespace = written.get("pid_namespace")
    # The content is untrusted: numbers may be too large, or brackets nested too deeply.
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return "another process"
    details = f"pid {pid}, since {since:%Y-%m-%d %H:%M:%S} UTC"
    if host != socket.gethostname():
        return f"a process on the machine {host} ({details})"
    # Containers may share a hostname, and each has its own process with this pid.
    if None not in (namespace, own := _pid_namespace()) and namespace != own:
        return f"a process in another container ({details})"
    if pid == os.getpid():
        return f"this process ({details})"
    if not _exists(pid):
        # The lock belongs to the open file, which a fork shares.
        return f"a process that has ended ({details}); one forked from it may hold the lock"
    return f"another process ({details})"


if sys.platform == "win32":
    import msvcrt

    def _exists(pid: int) -> bool:
        # There is no fork.
        return True

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

    def _exists(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            # Another user's.
            pass
        return True

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
