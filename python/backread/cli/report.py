"""``report``: figures of a mirror's conversations, in the terminal or as an HTML page."""

from __future__ import annotations

import sys
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from backread._display.words import size
from backread._files.access import read_file
from backread._files.unfinished import Unfinished
from backread.cli.arguments import Folder, JsonOption, file_to_write, flag, value
from backread.cli.exits import UnusableArgumentError, in_options
from backread.cli.paths import cannot_be_written
from backread.cli.rows import as_json
from backread.cli.stderr import say, tell
from backread.cli.waiting import waiting

__all__ = ["report"]


Shape = StrEnum("Shape", "TEXT JSON")
"""The values of ``--format``."""


def report(
    folder: Folder,
    output: Annotated[
        Path | None,
        file_to_write(
            "Write a report with charts to this HTML file; an earlier report is replaced.",
            "--output",
            "-o",
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        value("NAME", "Of days and hours, such as Europe/Berlin.", show_default="UTC"),
    ] = None,
    opening_hours: Annotated[
        str | None,
        value("HOURS", "Only these count as response time: 'mon-fri 9-17, sat 10-14'."),
    ] = None,
    since: Annotated[
        str | None, value("TIME", "From this date or time (in --timezone) on.")
    ] = None,
    until: Annotated[str | None, value("TIME", "Before this date or time (in --timezone).")] = None,
    shape: Annotated[
        Shape, typer.Option("--format", help="Without -o: text, or all figures as JSON.")
    ] = Shape.TEXT,
    json_too: JsonOption = False,
    open_it: Annotated[bool, flag("Open the FILE in the browser.", "--open")] = False,
) -> None:
    """Shows figures of the conversations in the mirror in FOLDER.

    Volume, first response times, unanswered and unread conversations, automatic invitations,
    attachments, operators' workload and the longest conversations. With -o they become one HTML
    file with charts, which loads nothing from elsewhere.

    Examples:
        backread report chats
        backread report chats -o report.html --open
        backread report chats --opening-hours 'mon-fri 9-17'
    """
    from backread.mirror import Mirror

    as_document = json_too or shape is Shape.JSON
    if output is None and open_it:
        raise UnusableArgumentError("--open needs a file to open; add -o report.html")
    if output is not None:
        if as_document:
            raise UnusableArgumentError("--format json goes to stdout; leave out -o")
        # What has no letter is part of a date.
        if output.suffix.upper() != output.suffix.lower() not in (".html", ".htm"):
            raise UnusableArgumentError("the report is HTML; name a file such as -o report.html")
        _check(output, folder)
    mirror = Mirror(folder)
    try:
        with waiting("computing the figures") as show:
            figures = mirror.figures(
                timezone=timezone,
                opening_hours=opening_hours,
                since=since,
                until=until,
                on_progress=lambda now: show(f"{now.step}, step {now.done + 1} of {now.total}"),
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; nothing was written") from None
    except ValueError as error:
        raise UnusableArgumentError(in_options(str(error))) from None
    if output is None:
        from backread.cli.report_text import figures_text

        text = as_json(figures) + "\n"
        sys.stdout.write(text if as_document else figures_text(figures, mirror.folder.name))
        return
    from backread._report import report_html

    page = report_html(figures, mirror.folder.name).encode("utf-8", "replace")
    _write(output, page)
    tell(f"{figures['totals']['messages']:,} messages: {size(len(page))}, {output}")
    if open_it and not webbrowser.open(output.absolute().as_uri()):
        say(f"no browser could be started; open {output} yourself", named=False)


def _check(output: Path, mirror: Path) -> None:
    """Refuses a place for the report before anything is computed."""
    from backread._report import is_report

    parent = output.absolute().parent
    if output.is_dir():
        raise UnusableArgumentError(
            f"-o {output} is a folder; name a file in it: -o {output / 'report.html'}"
        )
    if not parent.is_dir():
        raise UnusableArgumentError(f"-o {output}: the folder {parent} does not exist; create it")
    if mirror.resolve() in (parent.resolve(), *parent.resolve().parents):
        raise UnusableArgumentError(f"-o {output} is inside the mirror; name a place outside it")
    try:
        existing = read_file(output)
    except FileNotFoundError:
        return
    except OSError as error:
        raise cannot_be_written("-o", output, error) from None
    if existing and not is_report(existing):
        raise UnusableArgumentError(
            f"-o {output} exists and is no report of backread, so it is not replaced; remove it, "
            "or choose another name"
        )


def _write(output: Path, page: bytes) -> None:
    try:
        with Unfinished(output.absolute()) as unfinished:
            unfinished.file.write(page)
    except OSError as error:
        raise cannot_be_written("-o", output, error) from None
