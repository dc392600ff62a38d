"""Parses paths of the command line: ``~`` is the home folder, and URIs are rejected."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import typer

from backread._files.access import RefusedFileError
from backread._files.paths import local_path, shown
from backread._files.unfinished import Unfinished, scratch_folder
from backread.cli.exits import UnusableArgumentError, is_full
from backread.errors import BackreadError


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
folder_to_write = _reader("name a folder here, and copy it there afterwards")
_to_write = _reader("write to stdout and pipe it there, or copy the file there afterwards")


def to_write(text: str) -> Path:
    """A file to write, which may exist unless a mirror needs it."""
    from backread.mirror.store.folder import CURRENT, DATABASE_NAME, OWN_NAMES, PUBLISHED

    path = _to_write(text)
    for each in (path.absolute(), *path.absolute().parents):
        if each.name in OWN_NAMES and (
            is_there(each.with_name(DATABASE_NAME)) or is_there(each.with_name(PUBLISHED) / CURRENT)
        ):
            raise typer.BadParameter(
                f"{shown(path)} belongs to the mirror in {shown(each.parent)}; name another file"
            )
    return path


def is_there(path: Path) -> bool:
    """Whether there is such a file; not if this user may not look."""
    try:
        return path.exists()
    except OSError:
        return False


def scratch_file(suffix: str) -> Path:
    """A path for a temporary file; its folder is removed when the command ends."""
    try:
        return scratch_folder() / f"{secrets.token_hex(8)}.{suffix}"
    except OSError as error:
        raise UnusableArgumentError(
            f"no temporary file can be written: {error.strerror}; set TMPDIR to a writable folder"
        ) from None


@contextmanager
def write_errors(option: str, path: Path) -> Iterator[None]:
    """Turns an error of the file that an option names into a sentence that names both."""
    try:
        yield
    except OSError as error:
        # Network errors are also OSErrors; their messages say what to do.
        if isinstance(error, BackreadError):
            raise
        remedy = "free some space, or name another file" if is_full(error) else "name another file"
        then = "" if isinstance(error, RefusedFileError) else f"; {remedy}"
        raise UnusableArgumentError(
            f"{option} {shown(path)} cannot be written: {error.strerror}{then}"
        ) from None


def check_writable(option: str, path: Path) -> None:
    """Raises `UnusableArgumentError` if the file that an option names cannot be written."""
    with write_errors(option, path):
        Unfinished(path).discard()


@contextmanager
def written(option: str, path: Path) -> Iterator[IO[bytes]]:
    """The file that an option names; it gets its name only once it is complete."""
    with write_errors(option, path), Unfinished(path) as unfinished:
        yield unfinished.file
