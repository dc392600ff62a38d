"""``sync`` and ``runs``: the mirror from a shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread._client.arguments import LARGEST
from backread._client.listing import users_refused
from backread._display.words import amount, counts, odd_values
from backread._files.dataclass_json import to_json_value
from backread._progress.bar import shown_sync
from backread._progress.text import describe
from backread.cli.arguments import Folder
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import UnreadListsError, UnusableArgumentError
from backread.cli.paths import to_read
from backread.cli.probe import read_profile
from backread.cli.rows import as_json
from backread.cli.stderr import say, wrapped
from backread.cli.table_output import print_records
from backread.cli.waiting import waiting
from backread.errors import MirrorBusyError, MirrorError

if TYPE_CHECKING:
    from backread.mirror import SyncFigures, SyncProgress, SyncReport, UnfinishedRun
    from backread.mirror.sync.report import Mode

__all__ = ["progress", "runs", "summary", "sync"]

SECONDS_BETWEEN_LINES = 5.0
MOST_IDS = 10

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


class IfRunning(StrEnum):
    """The values of ``--if-running``."""

    FAIL = "fail"
    SKIP = "skip"


class Shape(StrEnum):
    """The values of ``runs --format``."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


@with_connection
def sync(
    connection: Connection,
    folder: Folder,
    full: Annotated[
        bool, typer.Option("--full", help="Read every list in full, and mark deleted rows.")
    ] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Skip lists of users who did not move, where that was seen to hold."
        ),
    ] = False,
    moved: Annotated[
        bool,
        typer.Option("--moved", help="Accept a new address or vendor for the mirror's service."),
    ] = False,
    max_staleness_days: Annotated[
        float,
        typer.Option(
            min=0,
            max=36_500,
            metavar="NUMBER",
            help="Read each list in full at least once in this many days.",
        ),
    ] = 30,
    retention_days: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            show_default=False,
            help="At the end, remove rows for good that were marked as deleted this many days ago.",
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            parser=to_read,
            show_default=False,
            help="A profile from `backread probe --save`; kept for later syncs.",
        ),
    ] = None,
    max_requests: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="NUMBER", show_default=False, help="End after this many requests."
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", show_default=False, help="End the reading after this time."
        ),
    ] = None,
    user: Annotated[
        list[int] | None,
        typer.Option(
            "--user",
            min=0,
            metavar="ID",
            show_default=False,
            help="Sync this user, marked as deleted if the service does not know it; repeatable.",
        ),
    ] = None,
    if_running: Annotated[
        IfRunning,
        typer.Option(help="If another sync of FOLDER is running: fail with 9, or skip this one."),
    ] = IfRunning.FAIL,
    no_publish: Annotated[
        bool, typer.Option("--no-publish", help="Leave publishing to a later sync.")
    ] = False,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            show_default=False,
            help="Memory for the database, such as 2GB; by default a quarter, at most 4GB.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the report as one line of JSON, and no progress lines."),
    ] = False,
    pseudonymise: Annotated[
        Path | None,
        typer.Option(
            "--pseudonymise",
            metavar="FILE",
            parser=to_read,
            show_default=False,
            help="Store names, addresses and references as pseudonyms, by the key in this file.",
        ),
    ] = None,
    drop_bodies: Annotated[
        bool, typer.Option("--drop-bodies", help="Store no text of messages.")
    ] = False,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact", help="Blank e-mail addresses, phone and card numbers in messages."
        ),
    ] = False,
) -> None:
    """Syncs the service into the mirror in FOLDER.

    An interrupted run is resumed. With a budget the run ends as partial, which is no error, and the
    next sync continues it, unless it was one of given users (--user). One sync at a time can write
    a folder: another ends with the exit code 9, or 0 with `--if-running skip`.
    """
    from backread.mirror import Mirror

    if max_seconds is not None and not max_seconds > 0:
        raise UnusableArgumentError(f"--max-seconds must be more than 0, not {max_seconds:g}")
    if full and user:
        raise UnusableArgumentError("--user cannot be combined with --full")
    if full and quick:
        raise UnusableArgumentError("--full and --quick cannot be combined")
    if quick and user:
        raise UnusableArgumentError("--user cannot be combined with --quick")
    retention = None if retention_days is None else retention_days * 86_400
    try:
        mirror = Mirror(
            folder,
            memory_limit=memory_limit,
            retention=retention,
            pseudonymise=pseudonymise,
            drop_bodies=drop_bodies,
            redact=redact,
        )
    except ValueError as error:
        raise UnusableArgumentError(str(error).replace("memory_limit", "--memory-limit")) from None
    mode: Mode = "full" if full else "quick" if quick else "incremental"
    found = read_profile(profile) if profile else None
    with connection.client() as client:
        try:
            with progress(lines=not as_json) as tell:
                done = mirror.sync(
                    client,
                    mode=mode,
                    max_staleness=max_staleness_days * 86_400,
                    on_progress=tell,
                    moved=moved,
                    profile=found,
                    max_requests=max_requests,
                    max_seconds=max_seconds,
                    users=user or None,
                    publish=not no_publish,
                )
        except MirrorBusyError:
            if if_running is IfRunning.FAIL:
                raise
            say(f"skipped, because another process is writing to {folder}")
            return
        except KeyboardInterrupt:
            advice = (
                "; pass the users again to read the rest"
                if user
                else ", and the next sync resumes from there"
            )
            raise KeyboardInterrupt(f"stopped; committed rows are kept{advice}") from None
    if as_json:
        sys.stdout.write(json.dumps(done.to_dict()) + "\n")
    else:
        sys.stdout.writelines(
            f"{line}\n" for line in wrapped(summary(done, quick=quick), sys.stdout)
        )
    refused = users_refused(f"the list of users: {done.certificate_reason}")
    if done.unread_users or done.users_without_id or refused:
        table = "lists" if done.unread_users else "rejects" if done.users_without_id else "runs"
        raise UnreadListsError(
            done.unread_users,
            done.users_without_id,
            refused,
            f"the table {table} of {folder} says why, and the next sync tries again",
        )


Limit = Annotated[
    int,
    typer.Option(
        "--limit",
        min=1,
        max=LARGEST,
        metavar="NUMBER",
        help="The number of runs, newest first.",
    ),
]


def runs(
    folder: Folder,
    limit: Limit = 10,
    shape: Annotated[
        Shape, typer.Option("--format", help="A table, or a line of JSON for each run.")
    ] = Shape.TABLE,
) -> None:
    """Shows the last runs of the mirror in FOLDER, and how far an unfinished one has come.

    Times are UTC. A run is partial if its budget was used up; the next sync continues it, unless
    it was one of given users (`sync --user`), which no later sync continues. The unfinished run is
    running, stopped by an error, or killed; the next sync continues it, too.
    """
    from backread.mirror import Mirror
    from backread.mirror.rights.purge import removal_is_pending
    from backread.mirror.store.lock import lock_holder

    mirror = Mirror(folder)
    holder = lock_holder(folder)
    unfinished = mirror.unfinished_run
    as_table = shape is Shape.TABLE
    if unfinished is not None and as_table:
        line = unfinished_line(unfinished, holder)
        sys.stdout.writelines(f"{each}\n" for each in wrapped(line, sys.stdout))
    elif unfinished is not None:
        sys.stdout.write(f"{as_json(_unfinished_row(unfinished, holder))}\n")
    if removal_is_pending(folder) and holder is None:
        say("a removal is not complete: run `backread sync` or `backread forget` again")
    try:
        with waiting("reading the runs"):
            relation = mirror.sql(RUNS if as_table else _all_of_runs(), [limit])
    except MirrorError:
        if unfinished is None:
            raise
        return
    rows = relation.fetchall()
    if as_table:
        print_records(relation.columns, rows, sys.stdout)
        return
    for row in rows:
        sys.stdout.write(f"{as_json(dict(zip(relation.columns, row, strict=True)))}\n")


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


def summary(done: SyncReport, *, quick: bool = False) -> str:
    """One line about a sync, and the figures of its run if an earlier sync began it.

    With the evidence for hints, if it was to be ``quick``.
    """
    lists = counts(done.lists_by_certificate)
    ends = done.lists_by_kind.get("end", 0)
    run = f"run {done.run_id}{' (resumed)' if done.resumed else ''}"
    reason = done.certificate_reason
    parts = [
        f"{run}: {_rows(done.users, done.messages)} read",
        f"{_rows(done.users_added, done.messages_added)} added",
        f"{_rows(done.users_updated, done.messages_updated)} updated",
        f"{done.deleted:,} gone" if done.mode == "full" else "",
        f"{done.rejects:,} rejects" if done.rejects else "",
        odd_values(done.odd_values),
        _cost(done),
        f"proof: users {done.certificate}{f' ({reason})' if reason else ''}"
        + (f", message lists {lists}" if lists else ""),
        f"{ends:,} of them read at their end alone" if ends else "",
        f"{done.lists_trusted:,} lists skipped" if done.lists_trusted else "",
        (done.audit or "").rstrip("."),
        (done.evidence or "").rstrip(".") if quick else "",
        _all_syncs(done.run) if done.resumed else "",
        _left(done) if done.partial else "",
        f"stopped by {done.error}" if done.partial and done.error else "",
        f"not known to the service: {_numbered(done.unknown_users)}" if done.unknown_users else "",
        "" if done.published else "not published",
        done.retention_problem or "",
        "read with another secret than before: if it is another account's, the two are mixed now"
        if done.has_other_secret
        else "",
    ]
    return "; ".join(part for part in parts if part)


def _rows(users: int, messages: int) -> str:
    return f"{amount(users, 'user')} and {amount(messages, 'message')}"


def _cost(figures: SyncFigures) -> str:
    return f"{amount(figures.requests, 'request')} in {figures.seconds:.1f} s"


def _all_syncs(run: SyncFigures) -> str:
    return (
        f"all syncs of the run: {_rows(run.users, run.messages)} read, {_cost(run)}, "
        f"message lists {counts(run.lists_by_certificate) or 'none'}"
    )


def _numbered(user_ids: tuple[int, ...]) -> str:
    more = f" and {len(user_ids) - MOST_IDS:,} more" if len(user_ids) > MOST_IDS else ""
    return "user " + ", ".join(map(str, user_ids[:MOST_IDS])) + more


def _left(done: SyncReport) -> str:
    if done.lists_left is None:
        return "partial: the list of users is not read to its end"
    parts = [f"partial: {done.lists_done or 0:,} message lists are read, {done.lists_left:,} left"]
    if done.lists_never_read:
        parts.append(f"{done.lists_never_read:,} users were never read")
    if done.oldest_list_at is not None:
        parts.append(f"the oldest was read {done.oldest_list_at:%Y-%m-%d %H:%M} UTC")
    return ", ".join(parts)


@contextmanager
def progress(*, lines: bool = True) -> Iterator[Callable[[SyncProgress], object] | None]:
    """Shows a sync's progress on stderr: a bar on a terminal, ``lines`` now and then elsewhere."""
    with shown_sync(None) as show:
        yield show or (_Lines() if lines else None)


class _Lines:
    """Plain lines: one per phase, and one every few seconds while reading."""

    def __init__(self) -> None:
        self._phase = ""
        self._said = 0.0

    def __call__(self, now: SyncProgress) -> None:
        if now.phase == self._phase and monotonic() - self._said < SECONDS_BETWEEN_LINES:
            return
        self._phase, self._said = now.phase, monotonic()
        say(f"{now.phase}: {describe(now)}, {now.seconds:.1f} s", named=False)
