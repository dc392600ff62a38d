"""Files that are as private as the folder they are in.

A folder made here is 0700 and its files 0600. In a folder that someone else made, a new file takes
the folder's mode & 0666 and its group; a file that takes another's place keeps that one's. Modes
are set with chmod: the umask belongs to the whole process. Root gives what it makes to the owner
of the folder. Windows has none of this: there access is inherited from the folder.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = [
    "NO_LINK",
    "Access",
    "RefusedFileError",
    "access_of",
    "check_file",
    "check_folder",
    "create",
    "create_private",
    "flush_directory",
    "flush_file",
    "give",
    "give_folder",
    "give_like_folder",
    "keep_for_owner",
    "make_folder",
    "make_folder_above",
    "make_subfolder",
    "open_or_create",
    "read_file",
]

# Windows has no such flags; the last keeps a named pipe from blocking the call.
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
BINARY = getattr(os, "O_BINARY", 0)


class RefusedFileError(PermissionError):
    """A file or folder is unsafe to use; the text says why, and what to do."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)

    def __str__(self) -> str:
        return str(self.strerror)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use a file: its mode, group and owner; None leaves the group and owner."""

    mode: int
    owner: tuple[int, int] | None


# --- folders --------------------------------------------------------------------------------------


def make_folder(folder: Path) -> None:
    """Makes the folder and those above it where they are missing, for this user alone.

    `RefusedFileError` for one that `check_folder` refuses.
    """
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        check_folder(folder)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        make_folder_above(folder.parent)
        make_folder(folder)
    else:
        keep_for_owner(folder)
        check_folder(folder)


def make_folder_above(folder: Path) -> None:
    """Makes the folder where it is missing; one that is there may be anyone's."""
    if not folder.is_dir():
        make_folder(folder)


def make_subfolder(folder: Path, *, keep: int = 0o2777) -> None:
    """Makes a folder of ours with the mode (as far as in ``keep``) and group of the one above."""
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise RefusedFileError(
                f"{folder} is a symbolic link or a file, where backread has a folder; remove it"
            ) from None
        return
    give_folder(folder, folder.parent, keep=keep)


def give_folder(folder: Path, like: Path, *, keep: int = 0o2777) -> None:
    """Gives a folder that was just made the mode (as far as in ``keep``) and group of another."""
    if os.name == "nt":
        return
    keep_for_owner(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = like.stat()
        mode = stat.S_IMODE(found.st_mode) & keep | 0o700
        give(descriptor, Access(mode, _owner(found)))
    finally:
        os.close(descriptor)


def check_folder(folder: Path, *, shared: bool = False) -> None:
    """`RefusedFileError` for a folder in which others could put files in the place of ours.

    ``shared`` allows one such as /tmp, in which others may add files but not replace ours.
    """
    if os.name == "nt":
        return
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    mode, user = stat.S_IMODE(found.st_mode), os.geteuid()
    if mode & stat.S_IWOTH and not (shared and mode & stat.S_ISVTX):
        raise RefusedFileError(
            f"every user of this machine may write to {folder} (mode {mode:04o}); take that right "
            "away (chmod o-w), or name a new folder in it"
        )
    if user in (0, found.st_uid) or found.st_uid == 0:
        return
    if mode & stat.S_IWGRP and found.st_gid in (os.getegid(), *os.getgroups()):
        return
    raise RefusedFileError(
        f"{folder} belongs to another user (uid {found.st_uid}), and no group of this process may "
        "write to it; name a folder of your own, or have its owner share it with a group"
    )


def keep_for_owner(folder: Path) -> None:
    """Gives us all rights in a folder that we just made: a umask may have taken some away."""
    if os.name != "nt" and folder.lstat().st_mode & 0o700 != 0o700:
        folder.chmod(0o700)


# --- files ----------------------------------------------------------------------------------------


def create(path: Path, *, like: Path | None = None) -> IO[bytes]:
    """A new file, opened for writing, with the access of ``like`` if that is there.

    FileExistsError where there is anything of that name.
    """
    descriptor = create_private(path)
    try:
        if like is not None and os.path.lexists(like):
            give(descriptor, access_of(like))
        else:
            give(descriptor, _access_in(path.parent))
        return os.fdopen(descriptor, "w+b")
    except BaseException:
        os.close(descriptor)
        path.unlink()
        raise


def open_or_create(path: Path) -> IO[bytes]:
    """A file of ours for reading and writing, made where there is none.

    `RefusedFileError` where it is a symbolic link, or no file at all.
    """
    while True:
        try:
            check_file(path)
            return os.fdopen(_open(path, os.O_RDWR), "r+b")
        except FileNotFoundError:
            with suppress(FileExistsError):
                return create(path)


def read_file(path: Path) -> bytes:
    """What a file of ours holds; `RefusedFileError` where it is a symbolic link or no file."""
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
        return file.read()


def give_like_folder(path: Path, folder: Path) -> None:
    """Gives a file that another library made the access of a new file in the folder."""
    descriptor = _open(path, os.O_RDWR)
    try:
        give(descriptor, _access_in(folder))
    finally:
        os.close(descriptor)


def flush_file(path: Path) -> None:
    """Waits until the file's bytes are on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def flush_directory(directory: Path) -> None:
    """Waits until the directory's entries are on the disk; Windows has no such call."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- access ---------------------------------------------------------------------------------------


def access_of(target: Path) -> Access:
    """The access of what is at this path, or of a new file there; refuses all but plain files."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return _access_in(target.parent)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    _refuse_special(target, found)
    if os.name != "nt" and found.st_uid != os.geteuid() and _is_open(target.parent.stat()):
        raise RefusedFileError(
            f"{target} belongs to another user, in a folder to which everyone may write; name "
            "another file"
        )
    return Access(stat.S_IMODE(found.st_mode) & 0o777, _owner(found))


def _access_in(folder: Path) -> Access:
    found = folder.stat()
    # Where everyone may add files, as in /tmp, the folder says nothing about ours.
    if _is_open(found):
        return Access(0o600, None)
    return Access(stat.S_IMODE(found.st_mode) & 0o666 | 0o600, _owner(found))


def _is_open(folder: os.stat_result) -> bool:
    return bool(folder.st_mode & stat.S_IWOTH)


def _owner(found: os.stat_result) -> tuple[int, int]:
    return found.st_uid, found.st_gid


def give(descriptor: int, access: Access) -> None:
    """Gives an open file or folder its mode and group."""
    if os.name == "nt":
        return
    mode, held = access.mode, os.fstat(descriptor)
    # Only root can give files away; it leaves none behind that the folder's owner cannot remove.
    wanted = None
    if access.owner is not None:
        user, group = access.owner
        wanted = (user if os.geteuid() == 0 else held.st_uid, group)
    if wanted is not None and wanted != _owner(held):
        try:
            os.fchown(descriptor, *wanted)
        except OSError:
            # The group that it has is not the one that the mode was meant for.
            mode &= ~0o070
    if stat.S_IMODE(os.fstat(descriptor).st_mode) == mode:
        return
    try:
        os.fchmod(descriptor, mode)
    except OSError:
        if os.fstat(descriptor).st_mode & 0o066 & ~mode:
            raise RefusedFileError(
                "the file system keeps no permissions, so that others could read the files; "
                "choose a folder on another one"
            ) from None


def create_private(path: Path) -> int:
    """A new file for this user alone; FileExistsError where there is anything of that name."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINK | BINARY, 0o600)


def _open(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | NO_LINK | BINARY)
    except OSError as error:
        if error.errno == errno.ELOOP:
            _refuse_special(path, path.lstat())
        raise
    try:
        _refuse_special(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_file(path: Path) -> None:
    """`RefusedFileError` where there is anything but a plain file of ours to write to."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        _refuse_special(path, found)
        _refuse_linked(path, found)


def _refuse_linked(path: Path, found: os.stat_result) -> None:
    # The owner of a folder can put a second name of our files there, but not a copy.
    if os.name != "nt" and found.st_nlink > 1 and path.parent.stat().st_uid != os.geteuid():
        raise RefusedFileError(
            f"{path} is a hard link, and the folder belongs to another user; remove it"
        )


def _refuse_special(path: Path, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise RefusedFileError(
            f"{path} is a symbolic link, which is not followed; remove it, or name the file itself"
        )
    if not stat.S_ISREG(found.st_mode):
        raise RefusedFileError(f"{path} is not a regular file; name another")
