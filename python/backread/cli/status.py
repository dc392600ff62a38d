"""``status``: what is proved of a mirror, what is not, and what to do."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from backread._display.words import minute
from backread._files.paths import shown
from backread.cli.arguments import Folder
from backread.cli.doctor.findings import Findings
from backread.cli.exits import INCOMPLETE
from backread.cli.text import escaped
from backread.cli.waiting import waiting

__all__ = ["status"]


def status(
    folder: Folder,
    max_staleness_days: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=36_500,
            metavar="NUMBER",
            show_default=False,
            help="The most days since a list was read in full; by default that of the last sync.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Shows what is proved of the mirror in FOLDER, what is not, how old it is, and what to do.

    Exit code 0: every list is proved, and none is doubtful, unread, or older than the last sync's
    `--max-staleness-days`. Otherwise 6. It reads the published snapshot, and says so if a sync is
    running.
    """
    from backread.mirror import Mirror

    staleness = None if max_staleness_days is None else max_staleness_days * 86_400
    with waiting("reading the mirror"):
        found = Mirror(folder).status(max_staleness=staleness)
    if as_json:
        sys.stdout.write(escaped(json.dumps(found.to_dict(), ensure_ascii=False)) + "\n")
        raise typer.Exit(0 if found.ok else INCOMPLETE)
    findings = Findings(as_json=False)
    sys.stdout.write(
        f"{shown(folder)}: run {found.run_id} ({found.mode}, {found.state}), as of "
        f"{minute(found.as_of)} UTC\n"
    )
    for line in found.lines:
        if line.state == "problem":
            findings.problem(line.text, line.advice, INCOMPLETE)
        elif line.state == "note":
            findings.warning(line.text, line.advice)
        else:
            findings.ok(line.text)
    findings.end()
    raise typer.Exit(findings.exit_code)
