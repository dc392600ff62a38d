"""``changes``: the rows of the mirror that changed since an earlier call."""

from __future__ import annotations

import secrets
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from backread._display.words import amount
from backread._files.spreadsheet import guards_in_words
from backread._files.unfinished import Unfinished, scratch_folder
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Format, destination, format_of
from backread.cli.paths import cannot_be_written, folder_to_write, to_write
from backread.cli.stderr import say
from backread.cli.text import escaped, plain_lines
from backread.errors import MirrorError

if TYPE_CHECKING:
    from backread._client.columns import Resource
    from backread.mirror import Changes

__all__ = ["changes"]

LINES = 2**20
"""The bytes of a file that are written at once, up to the end of a line."""


class Shape(StrEnum):
    """The values of ``--format``."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


if TYPE_CHECKING:
    Table = Resource
else:
    Table = StrEnum("Table", {"USERS": "users", "MESSAGES": "messages"})


def changes(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            parser=folder_to_write,
            show_default=False,
            help="The mirror's folder.",
        ),
    ],
    since: Annotated[
        str | None,
        typer.Option(
            metavar="CURSOR",
            show_default="every row",
            help="The cursor that an earlier call gave, or the number of a run.",
        ),
    ] = None,
    cursor_file: Annotated[
        Path | None,
        typer.Option(
            "--cursor-file",
            metavar="FILE",
            parser=to_write,
            show_default=False,
            help="Has the cursor: read first, and replaced once the output is complete.",
        ),
    ] = None,
    table: Annotated[
        Table | None,
        typer.Option("--table", show_default="both", help="Only the rows of one table."),
    ] = None,
    shape: Annotated[
        Shape | None,
        typer.Option(
            "--format", show_default="the suffix of --output, else json", help="What to write."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", parser=to_write, show_default="stdout", help="Where to."
        ),
    ] = None,
    raw_csv: Annotated[
        bool, typer.Option("--raw-csv", help="CSV with unchanged texts, even spreadsheet formulas.")
    ] = False,
) -> None:
    """Writes the users and messages of the mirror in FOLDER that changed.

    The cursor for the next call is printed to stderr, unless there is a --cursor-file.
    """
    from backread.mirror import Mirror
    from backread.mirror.changes import AGAIN

    kind = format_of(None if shape is None else Format(shape), output)
    if kind is Format.PARQUET and output is None and sys.stdout.isatty():
        raise UnusableArgumentError("--format parquet is not text: name a file with --output FILE")
    kept = None if cursor_file is None else _kept_cursor(cursor_file)
    if kept and since is not None:
        raise UnusableArgumentError(
            f"--cursor-file {cursor_file} has a cursor already; leave --since out, or remove the "
            "file"
        )
    since = kept or since
    start = int(since) if since is not None and since.isascii() and since.isdigit() else since
    name: Resource | None = "users" if table == "users" else "messages" if table else None
    try:
        found = Mirror(folder).changes(start, table=name)
    except MirrorError as error:
        remedy = f"remove {cursor_file}" if kept else "leave --since out"
        raise MirrorError(str(error).replace(AGAIN, f"{remedy} to get every row")) from None
    try:
        rows = _write(found, Shape(kind), output, raw_csv)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the cursor is as before") from None
    if cursor_file is None:
        say(f"{amount(rows, 'change')}; --since for the next: {found.cursor}", named=False)
        return
    try:
        with Unfinished(cursor_file) as unfinished:
            unfinished.file.write(f"{found.cursor}\n".encode())
    except OSError as error:
        raise cannot_be_written("--cursor-file", cursor_file, error) from None


def _write(found: Changes, shape: Shape, output: Path | None, raw_csv: bool) -> int:
    """Writes the rows and returns their number."""
    from backread.mirror.engine import load_duckdb
    from backread.mirror.export.changed_rows import write_changes

    # DuckDB writes to a path, so even stdout gets a copy.
    path = scratch_folder() / f"{secrets.token_hex(8)}.{shape}"
    try:
        rows, guards = write_changes(found, shape.value, path, raw_csv=raw_csv)
        with destination(output) as stream, path.open("rb") as file:
            _copy(file, stream, shape)
    except load_duckdb().Error as error:
        raise UnusableArgumentError(
            f"the changes could not be written to {path.parent}: {error}; free some space there, "
            "or set TMPDIR to another folder"
        ) from None
    finally:
        path.unlink(missing_ok=True)
    if guards:
        say(guards_in_words(guards))
    return rows


def _copy(file: IO[bytes], stream: IO[bytes], shape: Shape) -> None:
    on_terminal = stream is sys.stdout.buffer and sys.stdout.isatty()
    if shape is Shape.PARQUET or (shape is Shape.CSV and not on_terminal):
        shutil.copyfileobj(file, stream)
        return
    clean = escaped if shape is Shape.JSON else plain_lines
    while lines := file.readlines(LINES):
        stream.write(clean(b"".join(lines).decode()).encode())


def _kept_cursor(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", "replace").strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableArgumentError(
            f"--cursor-file {file} cannot be read: {error.strerror}; name another file"
        ) from None
