"""Temporary files and folders, renamed to their target when complete.

The writing process locks them. Unlocked ones were left by a killed process, so the next removes
them.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import stat
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
from backread._files.lock import try_lock
from backread._interruptible import run_to_its_end

UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}\.unfinished", re.DOTALL)
LONGEST_STEM = 50
"""How much of the name is in the temporary one: file names are limited to 255 bytes."""


class Unfinished:
    """A private file under a temporary name, which is renamed to its target when complete.

    As a context manager it is renamed at the end of the block, or removed after an error. Creating
    it removes those that killed processes left for the same target.
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
            if _is_ours(self.file.fileno()):
                return
            # Another process removed it before it was locked, as one of a killed process.
            self.file.close()

    def place(self) -> None:
        """Flushes it to the disk and renames it to the target, replacing an existing file."""
        self._finish()
        if os.name == "nt":
            self.file.close()
        self.path.replace(self._target)
        self._done = True
        self.file.close()
        flush_directory(self._target.parent)

    def place_new(self) -> bool:
        """Like `place`, but removes the file and returns False if the target exists.

        On a file system without hard links this checks first, which is not atomic.
        """
        self._finish()
        self._done = True
        try:
            os.link(self.path, self._target)
        except FileExistsError:
            return False
        except OSError:
            if os.path.lexists(self._target):
                return False
            if os.name == "nt":
                self.file.close()
            self.path.replace(self._target)
        finally:
            self.file.close()
            # Once unlocked, another process may have removed it as one of a killed process.
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
        # Last, since the target's mode may forbid writing even to its owner.
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
    """A random temporary name for ``name``; hidden, so that readers of the folder ignore it."""
    return f".{name[:LONGEST_STEM]}.{secrets.token_hex(8)}.unfinished"


def is_unfinished(name: str) -> bool:
    """Whether `unfinished_name` made the name."""
    return UNFINISHED.fullmatch(name) is not None


@contextmanager
def private_folder(directory: Path, name: str) -> Iterator[Path]:
    """A folder private to this user, removed at the end of the block unless it was renamed.

    Those that killed processes left for the same name are removed first.
    """
    folder, descriptor = _make_private(directory, name)
    try:
        yield folder
    finally:
        try:
            remove_folder(folder)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def scratch_folder() -> Path:
    """This process's folder for temporary files, removed when the process exits."""
    process = os.getpid()
    folder = _scratch.get(process)
    if folder is None:
        created, _ = _make_private(Path(tempfile.gettempdir()), "backread")
        # Another thread may have been first. A forked child gets a separate folder.
        folder = _scratch.setdefault(process, created)
        atexit.register(_remove_scratch, process, created)
    return folder


_scratch: dict[int, Path] = {}


def _remove_scratch(process: int, folder: Path) -> None:
    if process == os.getpid():
        remove_folder(folder)


def _make_private(directory: Path, name: str) -> tuple[Path, int | None]:
    """The folder, and the file descriptor that holds its lock."""
    remove_leftovers(directory, name)
    while True:
        folder = directory / unfinished_name(name)
        folder.mkdir(0o700)
        keep_for_owner(folder)
        if os.name == "nt":
            return folder, None
        # As with files, another process may remove it before it is locked.
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY)
            if _is_ours(descriptor):
                return folder, descriptor
            os.close(descriptor)


def remove_leftovers(directory: Path, name: str | None = None) -> None:
    """Removes the temporary files and folders of killed processes, for one name or for all.

    Those locked by a running process stay, and errors are ignored.
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
        # Open files cannot be removed there, but a folder in use could be emptied.
        if not is_folder:
            path.unlink()
        return
    if path.parent.stat().st_mode & stat.S_IWOTH and found.st_uid != os.geteuid():
        return
    if not is_folder and not stat.S_ISREG(found.st_mode):
        return
    descriptor = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | NO_LINK)
    try:
        if not try_lock(descriptor):
            return
        if is_folder:
            remove_folder(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int) -> bool:
    """Locks it; False if another process took it for one that a killed process left."""
    try:
        # Open files cannot be removed on Windows, so they need no lock there.
        is_locked = os.name == "nt" or try_lock(descriptor)
    except OSError:
        # Without locks, nothing is taken for a killed process's.
        is_locked = True
    return is_locked and os.fstat(descriptor).st_nlink > 0


def remove_folder(folder: Path) -> None:
    """Removes a folder if it is there; what cannot be removed stays.

    What a signal's handler raises is raised afterwards: within `shutil.rmtree`, it could make that
    close a file descriptor twice, and be replaced by the error of the second time.
    """
    run_to_its_end(lambda: shutil.rmtree(folder, ignore_errors=True))
