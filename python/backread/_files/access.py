"""Creates and opens files that are as private as the folder they are in.

New folders get the mode 0700, their files 0600. In an existing folder, a new file gets the folder's
mode & 0666 and its group; a file that replaces another keeps that one's. Modes are set with chmod,
because changing the umask would affect the whole process. Root gives new files to the folder's
owner. On Windows, access is inherited from the folder.

Also reads files that only their owner may read, such as keys and settings.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from backread._files.paths import shown

# Windows lacks these flags; O_NONBLOCK prevents a named pipe from blocking open().
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
BINARY = getattr(os, "O_BINARY", 0)

NO_MORE_FILES = (
    "this process may open no more files; raise its limit (ulimit -n, or LimitNOFILE= of a systemd "
    "unit) and try again"
)


class RefusedFileError(PermissionError):
    """A file or folder is unsafe to use; the message says why and what to do."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)

    def __str__(self) -> str:
        return str(self.strerror)


@dataclass(frozen=True, slots=True)
class Access:
    """A file's mode, and its owner and group; None leaves these unchanged."""

    mode: int
    owner: tuple[int, int] | None


# --- folders --------------------------------------------------------------------------------------


def make_folder(folder: Path) -> None:
    """Creates the folder and missing parents, private to this user.

    Raises `RefusedFileError` for a folder that `check_folder` refuses.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(0o700, exist_ok=True)
        keep_for_owner(each)
    check_folder(folder)


def make_subfolder(folder: Path) -> None:
    """Creates a folder with its parent's mode and group."""
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise RefusedFileError(
                f"{folder} is a symbolic link or a file, where backread needs a folder; remove it"
            ) from None
        return
    give_folder(folder, folder.parent)


def give_folder(folder: Path, like: Path) -> None:
    """Gives a new folder the mode and group of another, and the owner all rights."""
    if os.name == "nt":
        return
    keep_for_owner(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = like.stat()
        give(descriptor, Access(stat.S_IMODE(found.st_mode) & 0o2777 | 0o700, _owner(found)))
    finally:
        os.close(descriptor)


def check_folder(folder: Path, *, shared: bool = False, for_folder: bool = False) -> None:
    """Raises `RefusedFileError` for a folder in which other users could replace our files.

    ``shared`` allows folders with the sticky bit, such as /tmp: others may only add files.
    ``for_folder`` allows all that everyone may write to: our files will be in a private folder.
    """
    if os.name == "nt":
        return
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    mode = stat.S_IMODE(found.st_mode)
    if mode & stat.S_IWOTH and for_folder:
        return
    if mode & stat.S_IWOTH and not (shared and mode & stat.S_ISVTX):
        raise RefusedFileError(
            f"every user of this machine may write to {folder} (mode {mode:04o}); use a new folder "
            "in it (mkdir -m 700), or remove that permission (chmod o-w; if the mode stays, mount "
            "the file system with umask=077)"
        )


def keep_for_owner(folder: Path) -> None:
    """Restores the owner's rights to a new folder, which the umask may have removed."""
    if os.name != "nt" and folder.lstat().st_mode & 0o700 != 0o700:
        folder.chmod(0o700)


# --- files ----------------------------------------------------------------------------------------


def create(path: Path) -> IO[bytes]:
    """Creates a file with the access of its folder, and opens it for reading and writing.

    Raises FileExistsError if the path exists.
    """
    descriptor = create_private(path)
    try:
        give(descriptor, _access_in(path.parent))
        return os.fdopen(descriptor, "w+b")
    except BaseException:
        os.close(descriptor)
        path.unlink()
        raise


def open_or_create(path: Path) -> IO[bytes]:
    """Opens a file for reading and writing; creates it if it is missing.

    Raises `RefusedFileError` unless it is a regular file.
    """
    with suppress(FileExistsError):
        return create(path)
    check_file(path)
    return os.fdopen(_open(path, os.O_RDWR), "r+b")


def read_file(path: Path) -> bytes:
    """The content of a file; raises `RefusedFileError` unless it is a regular file."""
    with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
        return file.read()


def give_like_folder(path: Path, folder: Path) -> None:
    """Gives a file that another library created the access of a new file in the folder."""
    give_access(path, _access_in(folder))


def give_access(path: Path, access: Access) -> None:
    """Gives a file that another library created its mode and group."""
    descriptor = _open(path, os.O_RDWR)
    try:
        give(descriptor, access)
    finally:
        os.close(descriptor)


def flush_file(path: Path) -> None:
    """Flushes the file to the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def flush_directory(directory: Path) -> None:
    """Flushes the directory's entries to the disk; does nothing on Windows, which cannot."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- access ---------------------------------------------------------------------------------------


def access_of(target: Path) -> Access:
    """The access of the regular file at this path, or of a new file if there is none."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return _access_in(target.parent)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    _refuse_special(target, found)
    if os.name != "nt" and found.st_uid != os.geteuid() and _is_open(target.parent.stat()):
        raise RefusedFileError(
            f"{target} belongs to another user, and every user may write to its folder; "
            "choose another file"
        )
    return Access(stat.S_IMODE(found.st_mode) & 0o777, _owner(found))


def _access_in(folder: Path) -> Access:
    found = folder.stat()
    # The mode of a world-writable folder such as /tmp says nothing about the access to a file.
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
    mode, found = access.mode, os.fstat(descriptor)
    # Only root can change the owner; the folder's owner must be able to remove the file.
    wanted = None
    if access.owner is not None:
        user, group = access.owner
        wanted = (user if os.geteuid() == 0 else found.st_uid, group)
    if wanted is not None and wanted != _owner(found):
        try:
            os.fchown(descriptor, *wanted)
        except OSError:
            # The group bits were meant for the other group.
            mode &= ~0o070
    if stat.S_IMODE(os.fstat(descriptor).st_mode) == mode:
        return
    try:
        os.fchmod(descriptor, mode)
    except OSError:
        if os.fstat(descriptor).st_mode & 0o066 & ~mode:
            raise RefusedFileError(
                "the file system does not support permissions, so others could read the files; "
                "choose a folder on another file system"
            ) from None


def create_private(path: Path) -> int:
    """Creates a file private to this user; raises FileExistsError if the path exists."""
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
    """Raises `RefusedFileError` if the path exists and is unsafe to write to."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        _refuse_special(path, found)
        _refuse_linked(path, found)


def _refuse_linked(path: Path, found: os.stat_result) -> None:
    # The owner of the folder could have linked another of our files there.
    if os.name != "nt" and found.st_nlink > 1 and path.parent.stat().st_uid != os.geteuid():
        raise RefusedFileError(
            f"{path} is a hard link, and the folder belongs to another user; remove it"
        )


def _refuse_special(path: Path, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise RefusedFileError(
            f"{path} is a symbolic link, which is not followed; remove it, or use the path of the "
            "file"
        )
    if not stat.S_ISREG(found.st_mode):
        raise RefusedFileError(f"{path} is not a regular file; choose another")


def read_private_file(path: Path, most: int, *, owner_only: bool = False) -> bytes:
    """The first ``most`` bytes of a file that only its owner and their group may read.

    Symbolic links are followed within the file's folder only, as Kubernetes mounts secrets. Modes
    and owners are not checked on Windows.

    Args:
        path: The file.
        most: The most bytes to read.
        owner_only: Refuses a file that its group may read, or that belongs to a user other than
            this one and root.

    Raises:
        RefusedFileError: Others may read or replace the file, or it is not a regular file.
        OSError: It cannot be read.
    """
    target = _target(path)
    with os.fdopen(os.open(target, os.O_RDONLY | NO_LINK | BINARY), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise RefusedFileError(f"{shown(path)} is not a regular file; name another")
        if os.name != "nt":
            if owner_only:
                _refuse_other_users(path, found)
            _refuse_shared(path, target, found)
        return file.read(most)


def _target(path: Path) -> Path:
    target = Path(os.path.realpath(path, strict=True))
    if path.is_symlink() and not target.is_relative_to(os.path.realpath(path.parent)):
        raise RefusedFileError(
            f"{shown(path)} is a symbolic link to another folder, which is not followed; use the "
            "path of the file"
        )
    return target


def _refuse_other_users(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (0, os.geteuid()):
        raise RefusedFileError(
            f"{shown(path)} belongs to another user (uid {found.st_uid}); use a file of your own"
        )
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise RefusedFileError(
            f"other users may access {shown(path)} (mode {stat.S_IMODE(found.st_mode):04o}); run: "
            f"chmod 600 {shown(path)}"
        )


def _refuse_shared(path: Path, target: Path, found: os.stat_result) -> None:
    if found.st_mode & stat.S_IRWXO:
        raise RefusedFileError(f"every user may access {shown(path)}; run: chmod o= on it")
    if found.st_mode & stat.S_IWGRP:
        raise RefusedFileError(f"its group may change {shown(path)}; run: chmod g-w on it")
    folder = target.parent.stat().st_mode
    replaceable = folder & stat.S_IWOTH and not folder & stat.S_ISVTX
    if replaceable or (folder & stat.S_IWOTH and found.st_uid not in (0, os.geteuid())):
        raise RefusedFileError(
            f"every user may write to the folder of {shown(path)}; move it to a private one"
        )
