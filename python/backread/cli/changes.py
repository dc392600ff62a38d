"""``changes``: the rows of the mirror that changed since an earlier call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from backread._client.columns import Resource
from backread._display.words import amount
from backread._files.paths import shown
from backread._files.spreadsheet import guards_in_words
from backread._files.unfinished import Unfinished
from backread.cli.arguments import Folder
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Format, format_of, refuse_binary_on_terminal, write_by_path
from backread.cli.paths import cannot_be_written, to_write
from backread.cli.stderr import say
from backread.cli.waiting import waiting
from backread.errors import MirrorError

if TYPE_CHECKING:
    from backread.mirror import Changes
    from backread.mirror.export.copying import ChangesFormat

__all__ = ["changes"]


class Shape(StrEnum):
    """The values of ``--format``."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


if TYPE_CHECKING:
    Table = Resource
else:
    Table = StrEnum("Table", {"USERS": "users", "MESSAGES": "messages"})


def changes(
    folder: Folder,
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
            help="Has the cursor: read first, and replaced once the output is complete. Each "
            "--table needs its own.",
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
    from backread.mirror.published.changes import AGAIN

    kind = format_of(None if shape is None else Format(shape), output)
    refuse_binary_on_terminal(kind, output)
    if output and cursor_file and os.path.realpath(output) == os.path.realpath(cursor_file):
        raise UnusableArgumentError(
            f"--output and --cursor-file are the same file, {shown(output)}; name two"
        )
    name: Resource | None = "users" if table == "users" else "messages" if table else None
    kept = None if cursor_file is None else _kept_cursor(cursor_file, name)
    if kept and since is not None:
        raise UnusableArgumentError(
            f"--cursor-file {cursor_file} has a cursor already; leave --since out, or remove the "
            "file"
        )
    since = kept or since
    start = int(since) if since is not None and since.isascii() and since.isdigit() else since
    try:
        with waiting("opening the mirror"):
            found = Mirror(folder).changes(start, table=name)
    except MirrorError as error:
        remedy = f"remove {cursor_file}" if kept else "leave --since out"
        raise MirrorError(str(error).replace(AGAIN, f"{remedy} to get every row")) from None
    if cursor_file is not None:
        # First, or rows would be written without their cursor.
        with _cursor_errors(cursor_file):
            Unfinished(cursor_file).discard()
    try:
        rows = _write(found, kind, output, raw_csv)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the cursor is as before") from None
    if cursor_file is None:
        say(f"{amount(rows, 'change')}; --since for the next: {found.cursor}", named=False)
        return
    with _cursor_errors(cursor_file), Unfinished(cursor_file) as unfinished:
        kept = found.cursor if name is None else f"{found.cursor} {name}"
        unfinished.file.write(f"{kept}\n".encode())


@contextmanager
def _cursor_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_be_written("--cursor-file", file, error) from None


def _write(found: Changes, shape: Format, output: Path | None, raw_csv: bool) -> int:
    """Writes the rows and returns their number."""
    from backread.mirror.export.copying import write_changes

    done = (0, 0)

    def write(path: Path) -> None:
        nonlocal done
        kind: ChangesFormat = "csv" if shape is Format.CSV else "parquet"
        if shape is Format.JSON:
            kind = "json"
        with waiting("reading the changes"):
            done = write_changes(found, kind, path, raw_csv=raw_csv)

    write_by_path(write, shape, output, "the changes")
    rows, guards = done
    if guards:
        say(guards_in_words(guards))
    return rows


def _kept_cursor(file: Path, table: Resource | None) -> str | None:
    """The cursor in the file; `UnusableArgumentError` if it has none, or that of another table.

    After a cursor for both tables there is no table.
    """
    from backread.mirror.published.changes import CURSOR

    try:
        text = file.read_text("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableArgumentError(
            f"--cursor-file {file} cannot be read: {error.strerror}; name another file"
        ) from None
    if not text:
        return None
    cursor, _, written_for = text.partition(" ")
    if not CURSOR.fullmatch(cursor) or written_for not in ("", *get_args(Resource)):
        # Its text is not quoted: it may be a secret.
        raise UnusableArgumentError(
            f"--cursor-file {file} is not a cursor file of backread; name another"
        )
    if written_for not in ("", table):
        raise UnusableArgumentError(
            f"--cursor-file {file} was written for --table {written_for}; use a separate file for "
            "each --table"
        )
    return cursor
