"""Parses paths of the command line: ``~`` is the home folder, and URIs are rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from backread._files.access import RefusedFileError
from backread._files.paths import local_path, shown
from backread.cli.exits import UnusableArgumentError, is_full

__all__ = ["cannot_be_written", "folder_to_write", "is_there", "to_read", "to_write"]


def _reader(instead: str) -> Callable[[str], Path]:
    def path(text: str) -> Path:
        if text == "-":
            raise typer.BadParameter("name a file, not -; output goes to stdout by default")
        try:
            return local_path(text, instead)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return path


to_read = _reader("copy it to this machine first")
to_write = _reader("write to stdout and pipe it there, or copy the file there afterwards")
folder_to_write = _reader("name a folder here, and copy it there afterwards")


def is_there(path: Path) -> bool:
    """Whether there is such a file; not if this user may not look."""
    try:
        return path.exists()
    except OSError:
        return False


def cannot_be_written(option: str, path: Path, error: OSError) -> UnusableArgumentError:
    """The error for a file that an option names."""
    remedy = "; free some space, or name another file" if is_full(error) else "; name another file"
    if isinstance(error, RefusedFileError):
        remedy = ""
    return UnusableArgumentError(
        f"{option} {shown(path)} cannot be written: {error.strerror}{remedy}"
    )
