"""``export`` and ``tables``: the mirror for other tools."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread._display.words import amount, size
from backread._files.spreadsheet import guards_in_words
from backread._progress.bar import shown_export
from backread._progress.output import export_parts
from backread.cli.arguments import (
    ExcelOption,
    Folder,
    RawOption,
    Since,
    Until,
    argument,
    flag,
    value,
)
from backread.cli.exits import UnusableArgumentError
from backread.cli.paths import folder_to_write
from backread.cli.sql import Table
from backread.cli.stderr import Verbosity, every_few_seconds, say, tell

if TYPE_CHECKING:
    from backread.mirror import ExportProgress, ExportReport


Format = StrEnum("Format", "PARQUET CSV JSONL XLSX SQLITE DUCKDB")
"""The values of ``--format``."""


Codec = StrEnum("Codec", "ZSTD SNAPPY GZIP UNCOMPRESSED")
"""The values of ``--codec``."""


def export(
    folder: Folder,
    out: Annotated[
        Path,
        argument(
            "OUT", "A file or folder; written completely or not at all.", parser=folder_to_write
        ),
    ],
    shape: Annotated[
        Format | None,
        typer.Option("--format", show_default="the suffix of OUT", help="What to write."),
    ] = None,
    table: Annotated[
        list[Table] | None,
        typer.Option(
            show_default="users, messages, conversations",
            help="A table to export; may be repeated.",
        ),
    ] = None,
    conversations: Annotated[
        bool, flag("Only one row per user, with figures.", "--conversations")
    ] = False,
    since: Since = None,
    until: Until = None,
    user: Annotated[
        list[int] | None, value("USER_ID", "Only rows about this user; may be repeated.", min=0)
    ] = None,
    deleted: Annotated[bool, flag("Include rows that are marked as deleted.", "--deleted")] = False,
    everything: Annotated[
        bool,
        flag(
            "All that is held about the --user, as JSON and text: OUT is a folder, or a file that "
            "ends in .json.",
            "--everything",
        ),
    ] = False,
    raw_csv: RawOption = False,
    excel: ExcelOption = False,
    codec: Annotated[
        Codec | None,
        typer.Option(show_default="zstd", help="How to compress Parquet; some readers lack zstd."),
    ] = None,
    replace: Annotated[
        bool, flag("Replace OUT: any file, or a folder with exported files only.", "--replace")
    ] = False,
) -> None:
    """Exports the mirror in FOLDER to OUT, for other tools.

    Parquet, CSV and JSON lines have a file per table in the folder OUT, or one table in the file
    OUT. Excel, SQLite and DuckDB have all tables in the file OUT.

    Examples:
        backread export chats chats.xlsx
        backread export chats march --format csv --since 2026-03-01
        backread export chats person.json --user 42 --everything
    """
    from backread.mirror import Mirror
    from backread.mirror.export.target import TargetError

    if conversations and table:
        raise UnusableArgumentError("give either --conversations or --table")
    arguments: dict[str, Any] = {
        "format": shape and str(shape),
        "tables": ["conversations"] if conversations else table and [str(each) for each in table],
        "since": since,
        "until": until,
        "users": user or None,
        "deleted": deleted,
        "everything": everything,
        "raw_csv": raw_csv,
        "excel": excel,
        "codec": codec and str(codec),
        "replace": replace,
    }
    try:
        with shown_export(None) if not Verbosity.quiet else nullcontext() as show:
            shown = show or every_few_seconds(_line)
            done = Mirror(folder).export(out, **arguments, on_progress=shown)
    except TargetError as error:
        raise UnusableArgumentError(str(error)) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; nothing was written") from None
    _say_what_changed(done)
    rows = ", ".join(f"{count:,} {name}" for name, count in done.rows.items())
    files = amount(len(done.files), "file")
    summary = f"{rows}: {size(done.bytes)} of {done.format} in {files}, {out}"
    tell(summary)


def _say_what_changed(done: ExportReport) -> None:
    if done.guarded_cells:
        say(guards_in_words(done.guarded_cells))
    if done.cut_cells:
        say(f"{amount(done.cut_cells, 'cell')} cut to the 32,767 characters that XLSX allows")
    if done.replaced_cells:
        what = "control characters, which XLSX cannot hold"
        say(f"{amount(done.replaced_cells, 'cell')} with U+FFFD in place of {what}")


def _line(now: ExportProgress) -> str:
    return f"{now.table}: {', '.join(export_parts(now))}"
