"""``report``: figures of a mirror's conversations, in the terminal or as an HTML page."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from backread._display.words import duration, size
from backread._files.access import read_file
from backread._files.unfinished import Unfinished
from backread._progress.output import State, find_output
from backread.cli.arguments import Folder
from backread.cli.exits import UnusableArgumentError
from backread.cli.paths import cannot_be_written, to_write
from backread.cli.report_text import figures_text
from backread.cli.rows import as_json
from backread.cli.stderr import say
from backread.cli.usage import in_options

if TYPE_CHECKING:
    from backread.mirror import FiguresProgress

__all__ = ["report"]

SECONDS_BEFORE = 1.0
SECONDS_BETWEEN_LINES = 5.0


class Shape(StrEnum):
    """The values of ``--format``."""

    TEXT = "text"
    JSON = "json"


def report(
    folder: Folder,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            parser=to_write,
            show_default=False,
            help="Write a report with charts to this HTML file; an earlier report is replaced.",
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="UTC",
            help="The time zone of days, hours and opening hours, such as Europe/Berlin.",
        ),
    ] = None,
    opening_hours: Annotated[
        str | None,
        typer.Option(
            metavar="HOURS",
            show_default=False,
            help="Only these count as response time, such as 'mon-fri 9-17, sat 10-14'.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only from this date or time (in --timezone) on."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only before this date or time (in --timezone)."),
    ] = None,
    shape: Annotated[
        Shape, typer.Option("--format", help="Without -o: text, or all figures as JSON.")
    ] = Shape.TEXT,
    open_it: Annotated[bool, typer.Option("--open", help="Open the FILE in the browser.")] = False,
) -> None:
    """Shows figures of the conversations in the mirror in FOLDER.

    Volume, first response times, unanswered and unread conversations, automatic invitations,
    attachments, operators' workload and the longest conversations. With -o they become one HTML
    file with charts, which loads nothing from elsewhere.
    """
    from backread.mirror import Mirror

    if output is None and open_it:
        raise UnusableArgumentError("--open needs a file to open; add -o report.html")
    if output is not None:
        if shape is Shape.JSON:
            raise UnusableArgumentError("--format json goes to stdout; leave out -o")
        # What has no letter is part of a date.
        if output.suffix.upper() != output.suffix.lower() not in (".html", ".htm"):
            raise UnusableArgumentError("the report is HTML; name a file such as -o report.html")
        _check(output, folder)
    mirror = Mirror(folder)
    try:
        with _progress() as tell:
            figures = mirror.figures(
                timezone=timezone,
                opening_hours=opening_hours,
                since=since,
                until=until,
                on_progress=tell,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; nothing was written") from None
    except ValueError as error:
        raise UnusableArgumentError(in_options(str(error))) from None
    if output is None:
        text = as_json(figures) + "\n"
        sys.stdout.write(text if shape is Shape.JSON else figures_text(figures, mirror.folder.name))
        return
    from backread._report import report_html

    page = report_html(figures, mirror.folder.name).encode("utf-8", "replace")
    _write(output, page)
    sys.stdout.write(f"{figures['totals']['messages']:,} messages: {size(len(page))}, {output}\n")
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


@contextmanager
def _progress() -> Iterator[Callable[[FiguresProgress], object]]:
    """Shows the progress on stderr after a second: a bar on a terminal, else lines now and then."""
    shown = _Shown()
    timer = Timer(SECONDS_BEFORE, shown.begin)
    timer.daemon = True
    timer.start()
    try:
        yield shown
    finally:
        timer.cancel()
        timer.join()
        shown.end()


class _Shown:
    """The newest step, once there is something to wait for."""

    def __init__(self) -> None:
        self._output = find_output()
        self._now: FiguresProgress | None = None
        self._began = monotonic()
        self._said = monotonic()
        self._visible = False

    def __call__(self, now: FiguresProgress) -> None:
        self._now = now
        if self._visible:
            self._show()

    def begin(self) -> None:
        """Called a second after the beginning."""
        self._visible = True
        self._show()

    def end(self) -> None:
        """Leaves a line with the time that it took, if anything was shown."""
        if self._visible and self._output is not None:
            self._output.end(State("computed", (duration(monotonic() - self._began),)))

    def _show(self) -> None:
        now = self._now
        if now is None:
            return
        if self._output is not None:
            self._output.show(State(now.step, (), now.done / now.total))
        elif monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self._said = monotonic()
            say(f"{now.step}, step {now.done + 1} of {now.total}", named=False)
