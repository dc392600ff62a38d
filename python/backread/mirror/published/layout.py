"""Where a snapshot is: numbered folders in ``published``, and the link ``current`` to one of them.

``published/00000012/messages/*.parquet`` never changes once ``current`` names its folder, so
replacing the link replaces the whole snapshot atomically. Where there are no symbolic links, as on
Windows, a file ``CURRENT`` with the folder's name has the link's place.
"""

from __future__ import annotations

import re
from pathlib import Path

from backread._files.access import flush_directory, read_file
from backread._files.unfinished import Unfinished, remove_folder, unfinished_name
from backread.errors import MirrorError
from backread.mirror.store.folder import CURRENT, CURRENT_FILE, PUBLISHED

__all__ = [
    "current_link",
    "current_name",
    "point_current",
    "pointer",
    "remove_snapshot",
    "snapshot_name",
    "snapshot_names",
]

SNAPSHOT = re.compile(r"\d{8}", re.ASCII)


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
    link, file = folder / PUBLISHED / CURRENT, folder / PUBLISHED / CURRENT_FILE
    try:
        name = str(link.readlink()) if link.is_symlink() else read_file(file).decode().strip()
    except (FileNotFoundError, NotADirectoryError):
        if not link.is_dir():
            return None
        raise MirrorError(
            f"the mirror in {folder}: {link} is not a link to a snapshot; copy mirrors with their "
            "symbolic links, or remove it and sync again"
        ) from None
    except (OSError, ValueError) as error:
        raise MirrorError(f"the mirror in {folder}: {link} cannot be read: {error}") from error
    if SNAPSHOT.fullmatch(name) is None:
        raise MirrorError(
            f"the mirror in {folder}: {link} is damaged (it names {name!r:.80}, which is not a "
            "snapshot); remove it and sync again"
        )
    return name


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
    except (OSError, NotImplementedError):
        with Unfinished(directory / CURRENT_FILE) as file:
            file.file.write(f"{name}\n".encode())
        # Of a process that could make links, as on Windows.
        if link.is_symlink():
            link.unlink()
        return
    try:
        fresh.replace(link)
    finally:
        fresh.unlink(missing_ok=True)
    # Left from a file system without links; where case does not matter, it is the link itself.
    if not (directory / CURRENT_FILE).is_symlink():
        (directory / CURRENT_FILE).unlink(missing_ok=True)
    flush_directory(directory)


def remove_snapshot(folder: Path, name: str) -> None:
    """Removes a snapshot folder; what Windows cannot remove yet, the next publication does."""
    remove_folder(folder / PUBLISHED / name)
