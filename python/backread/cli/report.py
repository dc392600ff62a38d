"""``report``: figures of a mirror's conversations, in the terminal or as an HTML page."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from backread._display.words import size
from backread.cli.arguments import Folder, TextOrJson, file_to_write, flag, value, with_document
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Format, Target, write_document
from backread.cli.stderr import say, tell, waiting


@with_document(TextOrJson)
def report(
    as_json: bool,
    folder: Folder,
    output: Annotated[
        Path | None,
        file_to_write(
            "Write a report with charts to this HTML file, or with --json the figures.",
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
    from backread.mirror.export.target import TargetError

    if open_it and (output is None or as_json):
        raise UnusableArgumentError("--open needs a report to open; add -o report.html")
    mirror = Mirror(folder)
    try:
        with waiting("computing the figures") as show:
            options: dict[str, Any] = {
                "timezone": timezone,
                "opening_hours": opening_hours,
                "since": since,
                "until": until,
                "on_progress": lambda now: show(f"{now.step}, step {now.done + 1} of {now.total}"),
            }
            done = (
                mirror.figures(**options)
                if output is None or as_json
                else mirror.report(output, **options)
            )
    except TargetError as error:
        raise UnusableArgumentError(str(error)) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; nothing was written") from None
    if not isinstance(done, Path):
        from backread.cli.report_text import figures_text

        if as_json:
            write_document(done, Target(Format.JSON, output))
        else:
            sys.stdout.write(figures_text(done, mirror.folder.name))
        return
    tell(f"{size(done.stat().st_size)}, {output}")
    if open_it and not webbrowser.open(done.as_uri()):
        say(f"no browser could be started; open {output} yourself", named=False)
