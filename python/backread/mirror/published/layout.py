"""Where a snapshot is: numbered folders in ``published``, and the link ``current`` to one of them.

``published/00000012/messages/*.parquet`` never changes once ``current`` names its folder, so
replacing the link replaces the whole snapshot atomically. Where there are no symbolic links, as on
Windows, a file ``CURRENT`` with the folder's name has the link's place.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from backread._files.access import RefusedFileError, flush_directory, read_file
from backread._files.unfinished import Unfinished, is_unfinished, remove_folder, unfinished_name
from backread.errors import MirrorError
from backread.mirror.store.folder import CURRENT, CURRENT_FILE, PUBLISHED

__all__ = [
    "current_link",
    "current_name",
    "point_current",
    "pointer",
    "remove_snapshot",
    "remove_unfinished_links",
    "snapshot_name",
    "snapshot_names",
]

SNAPSHOT = re.compile(r"\d{8}", re.ASCII)
MOST_BYTES = 64


def snapshot_name(sequence: int) -> str:
    """The name of the folder of the snapshot with this number."""
    return f"{sequence:08}"


def snapshot_names(folder: Path) -> set[str]:
    """The names of all snapshot folders of a mirror, those that ``current`` never named too."""
    directory = folder / PUBLISHED
    try:
        entries = [] if directory.is_symlink() else list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {each.name for each in entries if SNAPSHOT.fullmatch(each.name)}


def current_name(folder: Path) -> str | None:
    """The name of the published snapshot's folder; None if nothing was published.

    Raises `MirrorError` if the link names anything but a snapshot.
    """
    link = folder / PUBLISHED / CURRENT
    try:
        name: str | None = str(link.readlink())
    except (FileNotFoundError, NotADirectoryError):
        name = _file_name(folder)
    except OSError as error:
        # Not a link. Where case does not matter, this is the file CURRENT.
        if os.name != "nt" and error.errno != errno.EINVAL:
            raise MirrorError(f"the mirror in {folder}: {link} cannot be read: {error}") from error
        name = _file_name(folder)
        if name is None:
            raise MirrorError(
                f"the mirror in {folder}: {link} is not a link to a snapshot; copy mirrors with "
                "their symbolic links, or remove it and sync again"
            ) from None
    if name is not None and SNAPSHOT.fullmatch(name) is None:
        raise MirrorError(
            f"the mirror in {folder}: {link} is damaged (it names {name!r:.80}, which is not a "
            "snapshot); remove it and sync again"
        )
    return name


def _file_name(folder: Path) -> str | None:
    path = folder / PUBLISHED / CURRENT_FILE
    try:
        return read_file(path)[:MOST_BYTES].decode("ascii", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RefusedFileError:
        return None
    except OSError as error:
        raise MirrorError(f"the mirror in {folder}: {path} cannot be read: {error}") from error


def current_link(folder: Path) -> Path | None:
    """The absolute path of the link to the published snapshot; None where it is a file."""
    link = folder.absolute() / PUBLISHED / CURRENT
    return link if link.is_symlink() else None


def pointer(folder: Path) -> Path:
    """What names the published snapshot: the link, or the file in its place."""
    return current_link(folder) or folder / PUBLISHED / CURRENT_FILE


def point_current(folder: Path, name: str) -> None:
    """Publishes the snapshot folder of this name, atomically and durably."""
    directory = folder / PUBLISHED
    link = directory / CURRENT
    fresh = directory / unfinished_name(CURRENT)
    try:
        fresh.symlink_to(name)
    except (OSError, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
        _write_file(directory, name)
        return
    try:
        _give_link(fresh, directory)
        fresh.replace(link)
    finally:
        fresh.unlink(missing_ok=True)
    flush_directory(directory)
    stale = directory / CURRENT_FILE
    with suppress(OSError):
        # Left from a file system without links; where case does not matter it is the link itself.
        if stat.S_ISREG(stale.lstat().st_mode):
            stale.unlink()


def _write_file(directory: Path, name: str) -> None:
    with Unfinished(directory / CURRENT_FILE) as fresh:
        fresh.file.write(f"{name}\n".encode("ascii"))
        flush_directory(directory)
    with suppress(OSError):
        if (directory / CURRENT).is_symlink():
            (directory / CURRENT).unlink()


def _give_link(link: Path, folder: Path) -> None:
    if os.name == "nt":
        return
    found = folder.stat()
    user = found.st_uid if os.geteuid() == 0 else -1
    with suppress(OSError):
        os.lchown(link, user, found.st_gid)


def remove_unfinished_links(folder: Path) -> None:
    """Removes the links that a killed process made and did not rename to ``current``."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list((folder / PUBLISHED).iterdir()):
            if is_unfinished(path.name) and path.is_symlink():
                path.unlink()


def remove_snapshot(folder: Path, name: str) -> None:
    """Removes a snapshot folder; what Windows cannot remove yet, the next publication does."""
    path = folder / PUBLISHED / name
    if path.is_symlink():
        with suppress(OSError):
            path.unlink()
    remove_folder(path)
