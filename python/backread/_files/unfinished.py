"""Unfinished files and folders: under a random name, and locked by their process.

The lock tells the next process whether their process was killed, and so whether to remove them.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from backread._files.access import (
    NO_LINK,
    access_of,
    check_folder,
    create_private,
    flush_directory,
    give,
    keep_for_owner,
)

__all__ = [
    "Unfinished",
    "private_folder",
    "remove_leftovers",
    "scratch_folder",
    "unfinished_name",
]

UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}\.unfinished", re.DOTALL)
LONGEST_STEM = 50
"""So many characters of a name are in its unfinished one, which must stay below 255 bytes."""


class Unfinished:
    """A private file under a temporary name, which is renamed to its target when complete.

    As a context manager it is renamed at the end of the block, or removed after an error. First
    removes what a killed process left of the same file.
    """

    def __init__(self, target: Path) -> None:
        check_folder(target.parent, shared=True)
        access_of(target)
        remove_leftovers(target.parent, target.name)
        self._target = target
        self._done = False
        while True:
            self.path = target.with_name(unfinished_name(target.name))
            self.file = os.fdopen(create_private(self.path), "w+b")
            if _lock(self.file.fileno()) and os.fstat(self.file.fileno()).st_nlink:
                return
            # Another process took it for a killed one's, in the moment before it was locked.
            self.file.close()

    def place(self) -> None:
        """Puts it in the place of what was there, on the disk."""
        self._finish()
        if os.name == "nt":
            self.file.close()
        self.path.replace(self._target)
        self._done = True
        self.file.close()
        flush_directory(self._target.parent)

    def place_new(self) -> bool:
        """Puts it in its place, on the disk; False, with nothing done, where something is there."""
        self._finish()
        self._done = True
        try:
            os.link(self.path, self._target)
        except FileExistsError:
            return False
        finally:
            self.file.close()
            # Without its lock it may be taken for a killed process's, and be gone by now.
            self.path.unlink(missing_ok=True)
        flush_directory(self._target.parent)
        return True

    def discard(self) -> None:
        """Removes it, unless it was placed."""
        if os.name == "nt":
            self.file.close()
        if not self._done:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self.file.close()

    def _finish(self) -> None:
        self.file.flush()
        # Only now: what it replaces may be a file that even its owner cannot write to.
        give(self.file.fileno(), access_of(self._target))
        os.fsync(self.file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and not self._done:
                self.place()
        finally:
            self.discard()


def unfinished_name(name: str) -> str:
    """A random name for what will be called ``name``; readers of folders pass over it."""
    return f".{name[:LONGEST_STEM]}.{secrets.token_hex(8)}.unfinished"


@contextmanager
def private_folder(directory: Path, name: str) -> Iterator[Path]:
    """A folder for this user alone, gone at the end of the block unless it was renamed.

    What killed processes left under that name is removed first.
    """
    folder, descriptor = _make_private(directory, name)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def scratch_folder() -> Path:
    """A folder of this process in the system's one for temporary files, removed at its end."""
    process = os.getpid()
    held = _scratch.get(process)
    if held is None:
        made, _ = _make_private(Path(tempfile.gettempdir()), "backread")
        # Another thread may have been first. A forked child has a folder of its own.
        held = _scratch.setdefault(process, made)
        atexit.register(_remove_scratch, process, made)
    return held


_scratch: dict[int, Path] = {}


def _remove_scratch(process: int, folder: Path) -> None:
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _make_private(directory: Path, name: str) -> tuple[Path, int | None]:
    """The folder, and what holds its lock."""
    remove_leftovers(directory, name)
    while True:
        folder = directory / unfinished_name(name)
        folder.mkdir(0o700)
        keep_for_owner(folder)
        if os.name == "nt":
            return folder, None
        # As with files, it may be taken for a killed process's until it is locked.
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY)
            if _lock(descriptor) and os.fstat(descriptor).st_nlink:
                return folder, descriptor
            os.close(descriptor)


def remove_leftovers(directory: Path, name: str | None = None) -> None:
    """Removes what killed processes left unfinished here, of that name or of any.

    What a running process has locked stays, and so does what cannot be removed.
    """
    stem = None if name is None else name[:LONGEST_STEM]
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            found = UNFINISHED.fullmatch(entry.name)
            if found is not None and stem in (None, found[1]):
                with suppress(OSError):
                    _remove_leftover(Path(entry.path))


def _remove_leftover(path: Path) -> None:
    found = path.lstat()
    is_folder = stat.S_ISDIR(found.st_mode)
    if os.name == "nt":
        # A file that is open cannot be removed there, but a folder can be emptied under a process.
        if not is_folder:
            path.unlink()
        return
    others_write = path.parent.stat().st_mode & stat.S_IWOTH
    if not (is_folder or stat.S_ISREG(found.st_mode)) or (
        others_write and found.st_uid != os.geteuid()
    ):
        return
    descriptor = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | NO_LINK)
    try:
        if not _lock(descriptor, quietly=False):
            return
        if is_folder:
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


if sys.platform == "win32":

    def _lock(descriptor: int, *, quietly: bool = True) -> bool:
        # What is open cannot be removed there, so that it needs no lock.
        return quietly

else:
    import fcntl

    def _lock(descriptor: int, *, quietly: bool = True) -> bool:
        """Marks it as that of a running process; False where it is another's.

        Where the file system keeps no locks, ``quietly`` counts it as ours.
        """
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return quietly
        return True
