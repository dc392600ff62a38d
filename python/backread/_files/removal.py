"""Removes folders, with what is in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from backread._files.interruptible import run_to_its_end

__all__ = ["remove_folder"]


def remove_folder(folder: Path) -> None:
    """Removes a folder if it is there; what cannot be removed stays.

    A signal is handled once it is removed: if a handler raises in `shutil.rmtree`, that may close a
    file descriptor twice, and raises an error of its own.
    """
    run_to_its_end(lambda: shutil.rmtree(folder, ignore_errors=True))
