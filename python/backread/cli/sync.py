"""``sync`` and ``runs``: the mirror from a shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backread._client.listing import users_refused
from backread._display.words import amount, counts, odd_values, some_ids
from backread._progress.bar import shown_sync
from backread._progress.output import describe
from backread.cli import files
from backread.cli.arguments import (
    Folder,
    TextOrJson,
    file_to_read,
    flag,
    value,
    with_document,
)
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import INCOMPLETE, UnreadListsError, UnusableArgumentError
from backread.cli.output import Format, Target, write_document
from backread.cli.probe import read_profile
from backread.cli.stderr import Verbosity, every_few_seconds, say, tell
from backread.errors import MirrorBusyError

if TYPE_CHECKING:
    from backread.mirror import SyncFigures, SyncProgress, SyncReport
    from backread.mirror.sync.report import Mode


IfRunning = StrEnum("IfRunning", "FAIL SKIP")
"""The values of ``--if-running``."""


@with_connection
@with_document(TextOrJson)
def sync(
    connection: Connection,
    as_json: bool,
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
    with_files: Annotated[
        bool, flag("Then fetch the files that messages link to, see `backread files`.", "--files")
    ] = False,
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
    a folder: a second one ends with exit code 9, or 0 with `--if-running skip`.

    Examples:
        backread sync chats                            # all, later only what is new
        backread sync chats --full                     # and what was deleted
        backread sync chats --quick --max-seconds 600
    """
    from backread.mirror import Mirror

    if max_seconds is not None and not max_seconds > 0:
        raise UnusableArgumentError(f"--max-seconds must be more than 0, not {max_seconds:g}")
    if full and quick:
        raise UnusableArgumentError("--full and --quick cannot be combined")
    retention = None if retention_days is None else retention_days * 86_400
    mirror = Mirror(
        folder,
        memory_limit=memory_limit,
        retention=retention,
        pseudonymise=pseudonymise,
        drop_bodies=drop_bodies,
        redact=redact,
    )
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
        attachments = files.fetch(mirror, client) if with_files else None
    if as_json:
        document = done.to_dict()
        if attachments is not None:
            document["files"] = attachments.to_dict()
        write_document(document, Target(Format.JSON))
    else:
        tell(summary(done, quick=quick))
        if attachments is not None:
            tell(files.summary(attachments))
    refused = users_refused(f"the list of users: {done.certificate_reason}")
    if done.unread_users or done.users_without_id or refused:
        table = "lists" if done.unread_users else "rejects" if done.users_without_id else "runs"
        raise UnreadListsError(
            done.unread_users,
            done.users_without_id,
            refused,
            f"the table {table} of {folder} says why, and the next sync tries again",
        )
    if attachments is not None and attachments.failures:
        raise typer.Exit(INCOMPLETE)


def summary(done: SyncReport, *, quick: bool = False) -> str:
    """One line about a sync, and the figures of its run if an earlier sync began it.

    With the evidence for hints, if a ``quick`` sync was requested.
    """
    lists = counts(done.lists_by_certificate)
    ends = done.lists_by_kind.get("end", 0)
    run = f"run {done.run_id}{' (resumed)' if done.resumed else ''}"
    reason, unknown = done.certificate_reason, some_ids(done.unknown_users)
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
        f"{ends:,} of them read only at their end" if ends else "",
        f"{done.lists_trusted:,} lists skipped" if done.lists_trusted else "",
        (done.audit or "").rstrip("."),
        (done.evidence or "").rstrip(".") if quick else "",
        _all_syncs(done.run) if done.resumed else "",
        _left(done) if done.partial else "",
        f"stopped by {done.error}" if done.partial and done.error else "",
        f"not known to the service: user {unknown}" if unknown else "",
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
        yield show or (every_few_seconds(_line, attrgetter("phase")) if lines else None)


def _line(now: SyncProgress) -> str:
    return f"{now.phase}: {describe(now)}, {now.seconds:.1f} s"
