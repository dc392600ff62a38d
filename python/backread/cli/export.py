"""``export`` and ``tables``: the mirror for other tools."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from backread._display.words import amount, size
from backread._files.spreadsheet import guards_in_words
from backread._progress.bar import shown_export
from backread._progress.text import export_parts
from backread.cli.arguments import Folder
from backread.cli.exits import UnusableArgumentError
from backread.cli.paths import folder_to_write
from backread.cli.stderr import say, wrapped
from backread.cli.usage import in_options
from backread.mirror.export.report import Codec, ExportFormat
from backread.mirror.export.target import NO_DELTA, TargetError, names_delta
from backread.mirror.published.table import TableName

if TYPE_CHECKING:
    from backread.mirror import ExportProgress, ExportReport

__all__ = ["export"]

SECONDS_BETWEEN_LINES = 5.0

SAME = {"json": "jsonl"}
"""Another name of a format, which the commands that write rows have as well."""

if TYPE_CHECKING:
    Format = ExportFormat
    Table = TableName
    Compression = Codec
else:
    Format = StrEnum("Format", {each.upper(): each for each in (*get_args(ExportFormat), *SAME)})
    Table = StrEnum("Table", {each.upper(): each for each in get_args(TableName)})
    Compression = StrEnum("Compression", {each.upper(): each for each in get_args(Codec)})


def _target(text: str) -> Path:
    if names_delta(text):
        raise typer.BadParameter(NO_DELTA)
    return folder_to_write(text)


def export(
    folder: Folder,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            parser=_target,
            show_default=False,
            help="A file or folder; written completely or not at all.",
        ),
    ],
    shape: Annotated[
        Format | None,
        typer.Option("--format", show_default="the suffix of OUT", help="What to write."),
    ] = None,
    table: Annotated[
        list[Table] | None,
        typer.Option(
            "--table",
            show_default="users, messages, conversations",
            help="A table to export; may be repeated.",
        ),
    ] = None,
    conversations: Annotated[
        bool,
        typer.Option("--conversations", help="Only one row per user, with figures."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only messages from this date or time (UTC) on, and their users.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Only messages before this date or time (UTC), and their users."
        ),
    ] = None,
    user: Annotated[
        list[int] | None,
        typer.Option(
            "--user", min=0, metavar="USER_ID", help="Only rows about this user; may be repeated."
        ),
    ] = None,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Include rows that are marked as deleted.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--everything",
            help="All that is held about the --user, as JSON and text: OUT is a folder, or a "
            "file that ends in .json.",
        ),
    ] = False,
    raw_csv: Annotated[
        bool, typer.Option("--raw-csv", help="CSV with unchanged texts, even spreadsheet formulas.")
    ] = False,
    excel: Annotated[
        bool, typer.Option("--excel", help="CSV that Excel opens as UTF-8, with a byte order mark.")
    ] = False,
    codec: Annotated[
        Compression | None,
        typer.Option(show_default="zstd", help="How to compress Parquet; some readers lack zstd."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace OUT: any file, or a folder with exported files only.",
        ),
    ] = False,
) -> None:
    """Exports the mirror in FOLDER to OUT, for other tools.

    Parquet, CSV and JSON lines have a file per table in the folder OUT, or one table in the file
    OUT. Excel, SQLite and DuckDB have all tables in the file OUT.
    """
    from backread.mirror import Mirror

    if conversations and table:
        raise UnusableArgumentError("give either --conversations or --table")
    arguments: dict[str, Any] = {
        "format": None if shape is None else SAME.get(str(shape), str(shape)),
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
        with _progress() as tell:
            done = Mirror(folder).export(out, **arguments, on_progress=tell)
    except (TargetError, ValueError) as error:
        raise UnusableArgumentError(in_options(str(error))) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; nothing was written") from None
    _say_what_changed(done)
    rows = ", ".join(f"{count:,} {name}" for name, count in done.rows.items())
    files = amount(len(done.files), "file")
    summary = f"{rows}: {size(done.bytes)} of {done.format} in {files}, {out}"
    sys.stdout.writelines(f"{line}\n" for line in wrapped(summary, sys.stdout))


def _say_what_changed(done: ExportReport) -> None:
    if done.guarded_cells:
        say(guards_in_words(done.guarded_cells))
    if done.cut_cells:
        say(f"{amount(done.cut_cells, 'cell')} cut to the 32,767 characters that XLSX allows")
    if done.replaced_cells:
        what = "NUL, at which SQLite ends a text"
        if done.format == "xlsx":
            what = "control characters, which XLSX cannot hold"
        say(f"{amount(done.replaced_cells, 'cell')} with U+FFFD in place of {what}")


@contextmanager
def _progress() -> Iterator[Callable[[ExportProgress], object]]:
    """Shows the progress on stderr: a bar on a terminal, a line now and then elsewhere."""
    with shown_export(None) as show:
        yield show or _Lines()


class _Lines:
    """A plain line every few seconds."""

    def __init__(self) -> None:
        self._said = monotonic()

    def __call__(self, now: ExportProgress) -> None:
        if monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self._said = monotonic()
            say(f"{now.table}: {', '.join(export_parts(now))}", named=False)
