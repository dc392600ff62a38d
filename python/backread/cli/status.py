"""``status``: what is proved of a mirror, what is not, and what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backread._display.words import minute
from backread._files.paths import shown
from backread.cli.arguments import Folder, value
from backread.cli.exits import INCOMPLETE
from backread.cli.output import Format, Target, with_target, write_document, write_rows
from backread.cli.stderr import say
from backread.cli.waiting import waiting

__all__ = ["status"]


@with_target
def status(
    target: Target,
    folder: Folder,
    max_staleness_days: Annotated[
        float | None,
        value(
            "NUMBER",
            "The most days since a list was read in full; by default that of the last sync.",
            min=0,
            max=36_500,
        ),
    ] = None,
) -> None:
    """Shows what is proved of the mirror in FOLDER, what is not, how old it is, and what to do.

    Exit code 0: every list is proved, and none is doubtful, unread, or older than the last sync's
    `--max-staleness-days`. Otherwise 6. It reads the published snapshot, and says so if a sync is
    running.

    Examples:
        backread status chats
        backread status chats --max-staleness-days 7 --json    # for a monitor
    """
    from backread.mirror import Mirror

    staleness = None if max_staleness_days is None else max_staleness_days * 86_400
    with waiting("reading the mirror"):
        found = Mirror(folder).status(max_staleness=staleness)
    if target.format is Format.JSON:
        write_document(found.to_dict(), target)
    else:
        say(
            f"{shown(folder)}: run {found.run_id} ({found.mode}, {found.state}), as of "
            f"{minute(found.as_of)} UTC",
            named=False,
        )
        write_rows(map(asdict, found.lines), target, ("state", "text", "advice"), wrap=True)
    raise typer.Exit(0 if found.ok else INCOMPLETE)
