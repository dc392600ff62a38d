"""``status`` and ``runs``: what is proved of a mirror, what to do, and what each sync did."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread._display.words import minute
from backread._files.dataclass_json import to_json_value
from backread._files.paths import shown
from backread._progress.output import describe
from backread.cli.arguments import Folder, value
from backread.cli.exits import INCOMPLETE
from backread.cli.output import Format, Target, with_target, write_document, write_rows
from backread.cli.stderr import say, tell, waiting
from backread.errors import MirrorError

if TYPE_CHECKING:
    from backread.mirror import UnfinishedRun


RUNS = """
SELECT run_id AS run, mode, state, lists_left,
    strftime(ended_at, '%Y-%m-%d %H:%M') AS "ended (UTC)",
    round(seconds, 1) AS seconds, round(outage_seconds, 1) AS outage, requests, users, messages,
    users_added + messages_added AS added, users_updated + messages_updated AS updated,
    deleted, rejects, certificate AS users_proved,
    array_to_string(list_transform(map_entries(lists_by_certificate),
        lambda entry: entry.key || ' ' || entry.value), ', ') AS lists_proved,
    array_to_string(list_transform(map_entries(lists_by_kind),
        lambda entry: entry.key || ' ' || entry.value), ', ') AS lists_read,
    resumptions AS resumed, error
FROM runs ORDER BY run_id DESC LIMIT ?
"""


FIRST_SHOWN = ("run", "mode", "state", "ended (UTC)", "users", "messages", "lists_proved", "error")
"""The columns to show first, if not all of them fit."""


@with_target
def status(
    target: Target,
    folder: Folder,
    max_staleness_days: Annotated[
        float | None,
        value(
            "NUMBER",
            "How many days ago a list may have been read in full; by default as in the last sync.",
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


Limit = Annotated[int, value("NUMBER", "The maximum number of runs, newest first.", min=1)]


@with_target
def runs(target: Target, folder: Folder, limit: Limit = 10) -> None:
    """Shows the last runs of the mirror in FOLDER, and how far an unfinished one has come.

    Times are UTC. A run is partial if its budget was used up; the next sync continues it, unless
    it was one of given users (`sync --user`), which no later sync continues. The unfinished run is
    running, stopped by an error, or killed; the next sync continues it, too.

    Examples:
        backread runs chats
        backread runs chats --limit 1 --json
    """
    from backread.mirror import Mirror
    from backread.mirror.rights.purge import removal_is_pending
    from backread.mirror.store.folder import lock_holder

    mirror = Mirror(folder)
    holder = lock_holder(folder)
    unfinished = mirror.unfinished_run
    as_table = target.format is Format.TABLE
    if unfinished is not None and not target.is_json:
        show = tell if target.output is None and as_table else say
        show(unfinished_line(unfinished, holder))
    if removal_is_pending(folder) and holder is None:
        say("a removal is not complete: run `backread sync` or `backread forget` again")
    rows = []
    if unfinished is not None and target.is_json:
        rows.append(_unfinished_row(unfinished, holder))
    columns: list[str] = []
    try:
        with waiting("reading the runs"):
            relation = mirror.sql(RUNS if as_table else _all_of_runs(), [limit])
            columns = relation.columns
            rows += [dict(zip(columns, row, strict=True)) for row in relation.fetchall()]
    except MirrorError:
        if unfinished is None:
            raise
    if rows or columns:
        write_rows(rows, target, columns, first=FIRST_SHOWN, wrap=True)


def _all_of_runs() -> str:
    from backread.mirror.store.schema import RUNS as COLUMNS

    times = [name for name, kind in COLUMNS if kind == "TIMESTAMPTZ"]
    texts = ", ".join(f"strftime({each}, '%Y-%m-%dT%H:%M:%S.%f+00:00') AS {each}" for each in times)
    return f"SELECT * REPLACE ({texts}) FROM runs ORDER BY run_id DESC LIMIT ?"


def _state(run: UnfinishedRun, holder: str | None) -> str:
    if run.error is not None:
        return "stopped"
    return "killed" if holder is None else "running"


def _unfinished_row(run: UnfinishedRun, holder: str | None) -> dict[str, Any]:
    """The run with the names of the table ``runs`` where that has them."""
    row = {**to_json_value(run), **to_json_value(run.progress)}
    del row["progress"]
    state = _state(run, holder)
    process = holder if state == "running" else None
    return row | {"state": state, "lists_left": run.lists_left, "process": process}


def unfinished_line(run: UnfinishedRun, holder: str | None) -> str:
    """One line about a run that is going on, was stopped by an error or was killed."""
    left = "" if run.lists_left is None else f", {run.lists_left:,} lists left"
    state = _state(run, holder)
    said = {
        "running": f"is running, by {holder}",
        "stopped": f"was stopped while {run.progress.phase} by {run.error}",
        "killed": "was killed; the next sync continues it",
    }[state]
    return (
        f"run {run.run_id} ({run.mode}), begun {run.started_at:%Y-%m-%d %H:%M:%S} UTC: "
        f"{describe(run.progress)}{left}; as of {timedelta(seconds=round(run.age))} ago; it {said}"
    )
