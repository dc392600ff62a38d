"""``changes``: the rows of the mirror that changed since an earlier call."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args

import typer

from backread._client.columns import Resource
from backread._display.words import amount
from backread._files.paths import shown
from backread.cli.arguments import Folder, file_to_write, value
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Target, with_target
from backread.cli.paths import check_writable, written
from backread.cli.stderr import say, waiting
from backread.errors import MirrorError

Table = StrEnum("Table", "USERS MESSAGES")
"""The values of ``--table``."""


@with_target
def changes(
    target: Target,
    folder: Folder,
    since: Annotated[
        str | None,
        value("CURSOR", "That of an earlier call, or the number of a run.", show_default="all"),
    ] = None,
    cursor_file: Annotated[
        Path | None,
        file_to_write(
            "Has the cursor: read first, and replaced once the output is complete. Each --table "
            "needs its own."
        ),
    ] = None,
    table: Annotated[
        Table | None, typer.Option(show_default="both", help="Only the rows of one table.")
    ] = None,
) -> None:
    """Writes the users and messages that changed in the mirror in FOLDER.

    The cursor for the next call is printed to stderr, unless there is a --cursor-file.

    Examples:
        backread changes chats -o rows.jsonl
        backread changes chats --cursor-file cursor -o rows.jsonl
    """
    from backread.cli.query import write_query_rows
    from backread.mirror import Mirror
    from backread.mirror.export.copying import UNORDERED
    from backread.mirror.published.changes import AGAIN
    from backread.mirror.store.engine import rows_of

    output = target.output
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
        check_writable("--cursor-file", cursor_file)
    cursor, query = found._opened()
    rows_of(cursor, UNORDERED)
    try:
        write_query_rows(cursor, query, target, "the changes")
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the cursor is as before") from None
    if cursor_file is None:
        rows = amount(found.num_rows, "change")
        say(f"{rows}; --since for the next: {found.cursor}", named=False)
        return
    with written("--cursor-file", cursor_file) as file:
        kept = found.cursor if name is None else f"{found.cursor} {name}"
        file.write(f"{kept}\n".encode())


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
