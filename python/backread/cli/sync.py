"""``sync`` and ``report``: the mirror from a shell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from backread._progress.bar import shown_sync
from backread._progress.text import describe
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import UnreadListsError, UnusableArgumentError
from backread.cli.paths import folder_to_write, to_read
from backread.cli.record import read_profile
from backread.cli.stderr import say
from backread.cli.tables import print_records

if TYPE_CHECKING:
    from backread.mirror import SyncProgress, SyncReport
    from backread.mirror.report import Mode

__all__ = ["DEMO_MARKER", "progress", "report", "summary", "sync"]

SECONDS_BETWEEN_LINES = 5.0

DEMO_MARKER = ".backread-demo"
"""Marks a folder made by ``backread demo``, which no other command may fill or remove."""

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        parser=folder_to_write,
        show_default=False,
        help="The mirror's folder.",
    ),
]

RUNS = """
SELECT run_id AS run, mode, strftime(ended_at, '%Y-%m-%d %H:%M:%S') AS ended,
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


@with_connection
def sync(
    connection: Connection,
    folder: Folder,
    full: Annotated[
        bool, typer.Option("--full", help="Read every list in full, and mark deleted rows.")
    ] = False,
    moved: Annotated[
        bool,
        typer.Option("--moved", help="Accept a new address or vendor for the mirror's service."),
    ] = False,
    max_staleness_days: Annotated[
        float,
        typer.Option(
            min=0, metavar="NUMBER", help="Read each list in full at least once in this many days."
        ),
    ] = 30,
    retention_days: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            show_default=False,
            help="First remove rows, for good, that were marked as deleted this many days ago.",
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
) -> None:
    """Syncs the service into the mirror in FOLDER.

    An interrupted run is resumed.
    """
    from backread.mirror import Mirror

    if (folder / DEMO_MARKER).exists():
        raise UnusableArgumentError(
            f"{folder} is the folder of `backread demo`, whose rows are made up; name another"
        )
    retention = None if retention_days is None else retention_days * 86_400
    mirror = Mirror(folder, retention=retention)
    mode: Mode = "full" if full else "incremental"
    found = read_profile(profile) if profile else None
    with connection.client() as client:
        try:
            with progress() as tell:
                done = mirror.sync(
                    client,
                    mode=mode,
                    max_staleness=timedelta(days=max_staleness_days),
                    on_progress=tell,
                    moved=moved,
                    profile=found,
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "stopped; committed rows are kept, and the next sync resumes from there"
            ) from None
    sys.stdout.write(summary(done) + "\n")
    if done.unread_users:
        raise UnreadListsError(
            done.unread_users,
            f"the table lists of {folder} says why, and the next sync tries again",
        )


def report(
    folder: Folder,
    limit: Annotated[
        int,
        typer.Option("--limit", min=1, metavar="NUMBER", help="The number of runs, newest first."),
    ] = 10,
) -> None:
    """Shows the last runs of the mirror in FOLDER.

    Unfinished runs are left out; times are UTC.
    """
    from backread.mirror import Mirror

    relation = Mirror(folder).sql(RUNS, [limit])
    print_records(relation.columns, relation.fetchall(), sys.stdout)


def summary(done: SyncReport) -> str:
    """One line about a finished run."""
    proved = ", ".join(f"{count:,} {name}" for name, count in done.lists_by_certificate.items())
    ends = done.lists_by_kind.get("end", 0)
    run = f"run {done.run_id}{' (resumed)' if done.resumed else ''}"
    parts = [
        f"{run}: {done.users:,} users and {done.messages:,} messages read",
        f"{done.users_added:,} users and {done.messages_added:,} messages added",
        f"{done.users_updated:,} users and {done.messages_updated:,} messages updated",
        f"{done.deleted:,} gone" if done.mode == "full" else "",
        f"{done.rejects:,} rejects" if done.rejects else "",
        f"{done.requests:,} requests in {done.seconds:.1f} s",
        f"users {done.certificate}",
        f"message lists: {proved}" if proved else "",
        f"{ends:,} of them read at their end alone" if ends else "",
    ]
    return "; ".join(part for part in parts if part)


@contextmanager
def progress() -> Iterator[Callable[[SyncProgress], object]]:
    """Shows a sync's progress on stderr: a bar on a terminal, a line now and then elsewhere."""
    with shown_sync(None) as show:
        yield show or _Lines()


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
