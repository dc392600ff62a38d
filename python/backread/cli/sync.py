"""``sync`` and ``runs``: the mirror from a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread._client.listing import users_refused
from backread._display.words import amount, counts, odd_values
from backread._files.dataclass_json import to_json_value
from backread._progress.bar import shown_sync
from backread._progress.text import describe
from backread.cli.arguments import Folder, file_to_read, flag, value
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import UnreadListsError, UnusableArgumentError, in_options
from backread.cli.output import Format, Target, with_target, write_document, write_rows
from backread.cli.probe import read_profile
from backread.cli.stderr import Verbosity, every_few_seconds, say, tell
from backread.cli.waiting import waiting
from backread.errors import MirrorBusyError, MirrorError

if TYPE_CHECKING:
    from backread.mirror import SyncFigures, SyncProgress, SyncReport, UnfinishedRun
    from backread.mirror.sync.report import Mode

__all__ = ["progress", "runs", "summary", "sync"]

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


FIRST_SHOWN = ("run", "mode", "state", "ended (UTC)", "users", "messages", "lists_proved", "error")
"""The columns to show first, if not all of them fit."""


IfRunning = StrEnum("IfRunning", "FAIL SKIP")
"""The values of ``--if-running``."""


@with_connection
def sync(
    connection: Connection,
    folder: Folder,
    full: Annotated[bool, flag("Read each list in full, and mark deleted rows.", "--full")] = False,
    quick: Annotated[
        bool, flag("Skip lists of users who did not move, where that was seen to hold.", "--quick")
    ] = False,
    moved: Annotated[
        bool, flag("Accept a new address or vendor for the mirror's service.", "--moved")
    ] = False,
    max_staleness_days: Annotated[
        float, value("NUMBER", "Read each list in full once in this many days.", min=0, max=36_500)
    ] = 30,
    retention_days: Annotated[
        float | None,
        value("NUMBER", "Remove rows for good that were marked as deleted so long ago.", min=0),
    ] = None,
    profile: Annotated[
        Path | None, file_to_read("A profile from `backread probe --save`; kept for later syncs.")
    ] = None,
    max_requests: Annotated[
        int | None, value("NUMBER", "End after this many requests.", min=1)
    ] = None,
    max_seconds: Annotated[
        float | None, value("SECONDS", "End the reading after this time.")
    ] = None,
    user: Annotated[
        list[int] | None,
        value("ID", "Sync this user, deleted if the service does not know it; repeatable.", min=0),
    ] = None,
    if_running: Annotated[
        IfRunning,
        typer.Option(help="If another sync of FOLDER is running: fail with 9, or skip this one."),
    ] = IfRunning.FAIL,
    no_publish: Annotated[bool, flag("Leave publishing to a later sync.", "--no-publish")] = False,
    memory_limit: Annotated[
        str | None,
        value("SIZE", "Memory for the database, such as 2GB; else a quarter, at most 4GB."),
    ] = None,
    as_json: Annotated[bool, flag("Print the report as a JSON document.", "--json")] = False,
    pseudonymise: Annotated[
        Path | None,
        file_to_read("Store names, addresses and references as pseudonyms, by the key in it."),
    ] = None,
    drop_bodies: Annotated[bool, flag("Store no text of messages.", "--drop-bodies")] = False,
    redact: Annotated[
        bool, flag("Blank e-mail addresses, phone and card numbers in messages.", "--redact")
    ] = False,
) -> None:
    """Syncs the service into the mirror in FOLDER.

    An interrupted run is resumed. With a budget the run ends as partial, which is no error, and the
    next sync continues it, unless it was one of given users (--user). One sync at a time can write
    a folder: another ends with the exit code 9, or 0 with `--if-running skip`.

    Examples:
        backread sync chats                            # all, later only what is new
        backread sync chats --full                     # and what was deleted
        backread sync chats --quick --max-seconds 600
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
        raise UnusableArgumentError(in_options(str(error))) from None
    mode: Mode = "full" if full else "quick" if quick else "incremental"
    found = read_profile(profile) if profile else None
    with connection.client() as client:
        try:
            with progress(lines=not as_json) as on_progress:
                done = mirror.sync(
                    client,
                    mode=mode,
                    max_staleness=max_staleness_days * 86_400,
                    on_progress=on_progress,
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
        write_document(done.to_dict(), Target(Format.JSON))
    else:
        tell(summary(done, quick=quick))
    refused = users_refused(f"the list of users: {done.certificate_reason}")
    if done.unread_users or done.users_without_id or refused:
        table = "lists" if done.unread_users else "rejects" if done.users_without_id else "runs"
        raise UnreadListsError(
            done.unread_users,
            done.users_without_id,
            refused,
            f"the table {table} of {folder} says why, and the next sync tries again",
        )


Limit = Annotated[int, value("NUMBER", "The most runs, newest first.", min=1)]


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
    from backread.mirror.store.lock import lock_holder

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
    if Verbosity.quiet:
        yield None
        return
    with shown_sync(None) as show:
        yield show or (_lines() if lines else None)


def _lines() -> Callable[[SyncProgress], None]:
    """Plain lines: one per phase, and one every few seconds while reading."""
    phase = ""
    sometimes = every_few_seconds(_line)

    def show(now: SyncProgress) -> None:
        nonlocal phase, sometimes
        if now.phase != phase:
            phase, sometimes = now.phase, every_few_seconds(_line)
            say(_line(now), named=False)
        else:
            sometimes(now)

    return show


def _line(now: SyncProgress) -> str:
    return f"{now.phase}: {describe(now)}, {now.seconds:.1f} s"
