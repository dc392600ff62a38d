"""Writes what DuckDB can only write to a path: made in a scratch folder, then copied."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Format, destination
from backread.cli.paths import scratch_file
from backread.cli.text import escaped, plain_lines

__all__ = ["refuse_binary_on_terminal", "write_by_path"]

LINES = 2**20
"""The bytes of a file that are written at once, up to the end of a line."""


def refuse_binary_on_terminal(shape: Format, output: Path | None) -> None:
    """Raises `UnusableArgumentError` for Parquet without a file."""
    if shape is Format.PARQUET and output is None and sys.stdout.isatty():
        raise UnusableArgumentError("--format parquet is not text: name a file with --output FILE")


def write_by_path(
    write: Callable[[Path], None], shape: Format, output: Path | None, what: str
) -> None:
    """Calls ``write`` with a path, and copies the file to stdout or to ``output``.

    Args:
        write: Makes the file.
        shape: Its format: JSON lines, CSV or Parquet.
        output: A file; None for stdout.
        what: What is written, for errors.
    """
    from backread.mirror.engine import disk_is_full, load_duckdb

    path = scratch_file(shape)
    try:
        write(path)
        with destination(output) as stream, path.open("rb") as file:
            _copy(file, stream, shape)
    except load_duckdb().Error as error:
        then = ""
        if disk_is_full(str(error)):
            then = "; free some space there, or set TMPDIR to another folder"
        raise UnusableArgumentError(
            f"{what} could not be written to {path.parent}: {error}{then}"
        ) from None
    finally:
        path.unlink(missing_ok=True)


def _copy(file: IO[bytes], stream: IO[bytes], shape: Format) -> None:
    on_terminal = stream is sys.stdout.buffer and sys.stdout.isatty()
    if shape is Format.PARQUET or (shape is Format.CSV and not on_terminal):
        shutil.copyfileobj(file, stream)
        return
    clean = escaped if shape is Format.JSON else plain_lines
    while lines := file.readlines(LINES):
        stream.write(clean(b"".join(lines).decode()).encode())
