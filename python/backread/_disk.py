"""What is written is on the disk before anything says that it is."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["flush_directory", "flush_file"]


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
