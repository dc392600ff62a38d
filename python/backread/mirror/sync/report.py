"""`SyncProgress`, reported while a sync runs, and `SyncReport`, returned at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from backread._display.html import (
    Html,
    badge,
    certificate_badge,
    every_field,
    output,
    quiet,
    sheet,
)
from backread._display.style import TABLES
from backread._display.words import amount, counts, duration, odd_values, some_ids
from backread._files.dataclass_json import JsonRecord

Mode: TypeAlias = Literal["incremental", "full", "quick"]
"""How a sync reads, see `Mirror.sync`."""

RunState: TypeAlias = Literal["finished", "partial"]
"""Whether a run read everything, or as much as its budget allowed."""

Phase: TypeAlias = Literal["reading", "checking", "finishing", "publishing", "finished"]
"""What a sync is doing: reading the service, fetching missing rows by id (only in mode ``full``),
closing the run, writing Parquet, nothing more."""


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """The progress of a sync, as of its latest commit. ``phase`` says what it is doing.

    ``users``, ``messages`` (rows read), ``requests`` and ``seconds`` are those of this sync, and
    ``run_requests`` those of the whole run, which an earlier sync may have begun. ``users_total``
    is the service's count of users, ``None`` while unknown.

    ``lists`` of the run's ``lists_total`` message lists are done, ``None`` while their number is
    unknown.
    ``rate`` is the current speed in rows a second, ``pace`` in requests a second. ``seconds_left``
    estimates the rest of the reading from the lists that are left and their recent rate; ``None``
    while there is too little data.
    """

    users: int
    users_total: int | None
    messages: int
    requests: int
    seconds: float
    phase: Phase
    lists: int = 0
    lists_total: int | None = None
    rate: float = 0.0
    pace: float = 0.0
    seconds_left: float | None = None
    run_requests: int = 0

    @property
    def rows(self) -> int:
        """Users and messages read."""
        return self.users + self.messages


@dataclass(frozen=True, slots=True, repr=False)
class SyncFigures(JsonRecord):
    """What one sync read and changed, or all syncs of a run. All but the times are counts.

    - ``users`` and ``messages`` are rows read from the service in ``requests`` requests; a row
      that was read again counts again. Requests that a killed sync sent after its last commit are
      not included.
    - ``users_added``, ``messages_added``: rows new to the mirror. ``users_updated``,
      ``messages_updated``: stored rows that differed or had been marked as deleted; an unchanged
      row that was merely missing from an earlier run does not count.
    - ``deleted``: users and messages newly marked with ``deleted_at``: in mode ``full``, and
      of the users given to a sync those in ``unknown_users``, with their messages.
    - ``rejects``: records that did not fit the schema and went to the table ``rejects``, each
      counted once in a run.
    - ``rows_asked``: rows missing from their list that were fetched by id (only in mode
      ``full``).
    - ``lists_by_certificate``: how many message lists have each certificate, by their last reading.
    - ``lists_by_kind``: how many message lists were read in full (``whole``), only at their growing
      end (``end``), were gone with their user (``gone``), or could not be read (``unread``).
    - ``lists_trusted``: message lists that a quick run skipped, because their user had not moved;
      0 if its audit did not end, or found a miss. ``lists_audited``: lists drawn from these at
      random and read. ``audit_misses``: 1 if a list had changed although its user had not moved;
      a run stops looking after the first.
    - ``started_at``: UTC. ``seconds``: time spent, without the time between two syncs of a run.
      ``outage_seconds``: how long the service was down meanwhile.
    """

    requests: int
    users: int
    messages: int
    users_added: int
    users_updated: int
    messages_added: int
    messages_updated: int
    deleted: int
    rejects: int
    rows_asked: int
    lists_by_certificate: dict[str, int] = field(hash=False)
    lists_by_kind: dict[str, int] = field(hash=False)
    started_at: datetime
    seconds: float
    outage_seconds: float
    lists_trusted: int = field(default=0, kw_only=True)
    lists_audited: int = field(default=0, kw_only=True)
    audit_misses: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True, repr=False)
class SyncReport(SyncFigures):
    """What one sync read and changed, and what its run has proved so far.

    The fields of `SyncFigures` are those of this sync alone, and ``run`` has those of the whole
    run, which differ if the run began in an earlier sync that did not finish (``resumed``). All
    other fields describe the run as it is after this sync.

    - ``run_id`` counts the runs of this mirror from 1; ``mode`` is that of the run:
      ``"incremental"`` for a quick run that had no evidence, or found a miss.
    - ``audit``: what the audit of a quick run says, in a sentence; null for other runs.
      ``evidence``: whether hints are trusted, and what earlier runs have shown of them.
    - ``certificate``: what the sweep over the users proved; ``certificate_reason``: why nothing.
      ``uncertified_users``: the ids of users whose list earned no certificate, ascending;
      ``unread_users``: those of them whose list could not be read, or not to its end. Their
      earlier rows stay, ``lists`` has the reason, and the next sync reads them first.
      ``users_without_id``: rejected users without a usable id, whose messages were not requested.
    - ``ended_at``: UTC.
    - ``state``: ``"finished"``, or ``"partial"`` if the budget was used up. Of a partial run,
      ``lists_done`` message lists are read and ``lists_left`` are not (null if the list of users
      was not read to its end); of ``lists_never_read`` users the mirror has no messages at all yet,
      and of the others left, the oldest was read at ``oldest_list_at``. All are null of a finished
      run. ``users_swept_at`` is when the list of users was last read to its end.
    - ``unknown_users``: those of the users given to the sync that the service does not know.
    - ``has_other_secret``: true if the sync before had another secret. If that was not replaced, it
      is another account's, whose rows are mixed with the first one's now.
    - ``odd_values``: how many values of documented fields have another type, by table and column,
      such as ``{"messages.created_at": 180}``: the column is null, and ``extra`` has the value as
      sent. Of all rows that the mirror holds and that are not deleted, whenever they were read.
    - ``repaired_text``: how many places of what this call read were not valid Unicode, and have
      U+FFFD now.
    - ``published``: false if the sync was told not to publish.
    - ``retention_problem``: why rows past the mirror's ``retention`` were not removed: the clock of
      this machine is wrong, or the service's; null if there is no such reason.
    - ``resumptions``: how often the run was resumed. ``error``: what last stopped it, null if
      nothing did, or only its budget.
    """

    run: SyncFigures
    run_id: int
    mode: Mode
    resumed: bool
    certificate: str
    certificate_reason: str | None
    uncertified_users: tuple[int, ...]
    ended_at: datetime
    resumptions: int = 0
    error: str | None = None
    unread_users: tuple[int, ...] = ()
    state: RunState = "finished"
    lists_done: int | None = None
    lists_left: int | None = None
    lists_never_read: int | None = None
    oldest_list_at: datetime | None = None
    users_swept_at: datetime | None = None
    published: bool = True
    unknown_users: tuple[int, ...] = ()
    has_other_secret: bool = False
    users_without_id: int = 0
    odd_values: dict[str, int] = field(default_factory=dict, hash=False)
    retention_problem: str | None = None
    repaired_text: int = 0
    audit: str | None = None
    evidence: str | None = None

    _in_repr = ("run_id", "state", "users", "messages", "certificate")

    @property
    def partial(self) -> bool:
        """True if the run is not at its end; the next sync continues it."""
        return self.state == "partial"

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th scope="col" class="br-number">{name}</th>'
            for name in ("", "read", "added", "updated")
        )
        changed = "".join(
            f'<tr><th scope="row">{name}</th>'
            + "".join(
                f'<td class="br-number">{getattr(self, name + suffix):,}</td>'
                for suffix in ("", "_added", "_updated")
            )
            + "</tr>"
            for name in ("users", "messages")
        )
        how = quiet(f"{self.mode}{', resumed' if self.resumed else ''}")
        return output(
            f"{TABLES}<table><caption>SyncReport: run {self.run_id} {how}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{changed}</tbody></table>"
            f"{sheet('', self._rows())}{every_field(self)}"
        )

    def _rows(self) -> list[tuple[str, Any]]:
        """The names and values of what matters most, for a table."""
        run = self.run
        unproved = Html(f"{badge('unproved', '! uncertified')} {some_ids(self.uncertified_users)}")
        rows = [
            ("users proved", certificate_badge(self.certificate, self.certificate_reason)),
            ("message lists proved", counts(self.lists_by_certificate) or Html("&ndash;")),
            ("of the users", self.uncertified_users and unproved),
            ("message lists read", counts(self.lists_by_kind) or Html("&ndash;")),
            ("took", f"{duration(self.seconds)}, {amount(self.requests, 'request')}"),
            (
                "all syncs of the run",
                self.resumed
                and f"{amount(run.users, 'user')}, {amount(run.messages, 'message')}, "
                f"{duration(run.seconds)}, {amount(run.requests, 'request')}",
            ),
            ("service down", self.outage_seconds and duration(self.outage_seconds)),
            ("gone", (self.deleted or self.mode == "full") and f"{self.deleted:,}"),
            ("rejects", self.rejects and f"{self.rejects:,}: see the table rejects"),
            ("odd values", odd_values(self.odd_values)),
            ("text repaired", self.repaired_text and f"in {amount(self.repaired_text, 'place')}"),
            ("stopped by" if self.partial else "earlier error", self.error),
        ]
        return [(name, value) for name, value in rows if value]
