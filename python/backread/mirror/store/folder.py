"""The files of a mirror's folder, which folders may become one, and the lock of its one writer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from backread._files.lock import HeldError, hold, holder_of
from backread.errors import MirrorBusyError, MirrorError

DATABASE_NAME = "mirror.duckdb"
LOG_NAME = f"{DATABASE_NAME}.wal"
SPILL_NAME = f"{DATABASE_NAME}.tmp"
"""DuckDB's spill folder."""

LOCK_NAME = "sync.lock"
PROGRESS_NAME = "progress.json"
REMOVAL_NAME = "removal.pending"

FILES = "files"
"""The attachments, see `backread.mirror.attachments`."""

PUBLISHED = "published"
CURRENT = "current"
"""The link to the published snapshot, below `PUBLISHED`."""
CURRENT_FILE = "CURRENT"
"""The file that has its place where there are no symbolic links."""

VIEWS_NAME = "chats.duckdb"
VIEWS_LOG_NAME = f"{VIEWS_NAME}.wal"
VIEWS_NAMES = {VIEWS_NAME, VIEWS_LOG_NAME}
"""What a sync adds only beside its database; elsewhere it belongs to another program."""

OWN_NAMES = {
    DATABASE_NAME,
    LOG_NAME,
    SPILL_NAME,
    LOCK_NAME,
    PROGRESS_NAME,
    FILES,
    PUBLISHED,
    REMOVAL_NAME,
    *VIEWS_NAMES,
}
"""All that a sync puts into the folder."""

DEMO_MARKER = ".backread-demo"
"""Marks a folder made by ``backread demo``, which nothing else may fill or remove."""


def file_path(folder: Path, sha256: str) -> Path:
    """Where the attachment with this hash is in a mirror's folder."""
    return folder / FILES / sha256[:2] / sha256


def require_database(folder: Path) -> None:
    """Raises `MirrorError` if the folder has no mirror."""
    if not (folder / DATABASE_NAME).is_file():
        raise MirrorError(f"there is no mirror in {folder}; name the folder of a mirror")


def refuse_demo(folder: Path) -> None:
    """Raises `MirrorError` if ``backread demo`` made the folder."""
    if os.path.lexists(folder / DEMO_MARKER):
        raise MirrorError(
            f"{folder} is the folder of `backread demo`, whose rows are made up; sync into another "
            "folder, or remove this one first"
        )


def refuse_foreign(folder: Path) -> None:
    """Raises `MirrorError` for a folder with other files and no mirror; changes nothing in it."""
    if (folder / DATABASE_NAME).exists():
        return
    if any(os.path.lexists(folder / PUBLISHED / each) for each in (CURRENT, CURRENT_FILE)):
        raise MirrorError(
            f"the mirror in {folder} has lost its {DATABASE_NAME}; what was published can still be "
            "read, and a sync needs a new folder"
        )
    foreign = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.name not in OWN_NAMES - VIEWS_NAMES and not entry.name.startswith(".")
    )
    if foreign:
        raise MirrorError(
            f"{folder} is not a mirror and contains other files ({foreign[0]}); choose an empty "
            f"folder, or use a folder in it, such as {folder / 'chats'}"
        )


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; raises `MirrorBusyError` if another process has it."""
    with ExitStack() as held:
        try:
            held.enter_context(hold(folder / LOCK_NAME))
        except HeldError as error:
            raise MirrorBusyError(
                f"the mirror in {folder} is being synced by {error}; wait for it to end, or end "
                "it, and try again"
            ) from None
        yield


def lock_holder(folder: Path) -> str | None:
    """The process that is writing to the folder, in words; None if there is none."""
    return holder_of(folder / LOCK_NAME)
