"""The file that says that a removal is not complete, for those who do not open the database."""

from __future__ import annotations

from pathlib import Path

from backread._files.unfinished import Unfinished
from backread.mirror.store.folder import REMOVAL_NAME

__all__ = ["mark_removal", "removal_is_pending", "unmark_removal"]

TEXT = b"A removal of rows is not complete: run `backread sync` or `backread forget` again.\n"


def mark_removal(folder: Path) -> None:
    """Writes the file, durably; before rows are removed from the tables."""
    with Unfinished(folder / REMOVAL_NAME) as fresh:
        fresh.file.write(TEXT)


def unmark_removal(folder: Path) -> None:
    """Removes the file, once nothing is left of the rows, or none was removed."""
    (folder / REMOVAL_NAME).unlink(missing_ok=True)


def removal_is_pending(folder: Path) -> bool:
    """Whether files may still have removed rows; also true while a removal goes on."""
    return (folder / REMOVAL_NAME).exists()
