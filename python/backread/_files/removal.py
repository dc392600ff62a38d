"""Removes folders, with what is in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from backread._interruptible import run_to_its_end

__all__ = ["remove_folder"]


def remove_folder(folder: Path) -> None:
    """Removes a folder if it is there; what cannot be removed stays.

    What a signal's handler raises is raised afterwards: within `shutil.rmtree`, it could make that
    close a file descriptor twice, and be replaced by the error of the second time.
    """
    run_to_its_end(lambda: shutil.rmtree(folder, ignore_errors=True))
