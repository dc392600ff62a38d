"""What a sync says of itself: `SyncProgress` while it runs, `SyncReport` at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

__all__ = ["Mode", "Phase", "SyncProgress", "SyncReport"]

Mode: TypeAlias = Literal["incremental", "full"]
"""How a sync reads, see `Mirror.sync`."""

Phase: TypeAlias = Literal["reading", "checking", "finishing", "publishing", "finished"]
"""What a sync is doing: reading the service, asking by id for rows that it did not show (only in
mode ``full``), closing the run, writing Parquet, nothing more."""


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """How far a sync has come, as of its latest commit.

    ``users``, ``messages`` (rows read) and ``requests`` count the whole run, what it did before it
    was killed and resumed included. ``users_total`` is the service's own count of users, ``None``
    while unknown. ``seconds`` are those spent on the run.

    ``lists`` of ``lists_total`` message lists are done, ``None`` while their number is unknown.
    ``rate`` is in rows a second and ``pace`` in requests a second, both now. ``seconds_left`` is
    what the reading will take yet, from the lists that are left and how fast they went of late;
    ``None`` while there is no ground to say.
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

    @property
    def rows(self) -> int:
        """Users and messages read."""
        return self.users + self.messages


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one run of a sync read and changed. All numbers but ``seconds`` are counts.

    - ``run_id`` counts the runs of this mirror from 1. ``resumed`` is true where the run began in
      an earlier sync that did not end; the counts are then those of both.
    - ``users`` and ``messages`` are rows read from the service in ``requests`` requests; a row
      that was read once more after a kill counts again. Requests that a killed sync sent after its
      last commit are not known.
    - ``users_added``, ``messages_added``: rows the mirror did not have. ``users_updated``,
      ``messages_updated``: rows it had that differed, or that had been marked as gone; a row that
      a run before had not shown and that is as it was does not count.
    - ``deleted``: users and messages newly marked with ``deleted_at`` (only in mode ``full``).
    - ``rejects``: records that did not fit and went to the table ``rejects``.
    - ``certificate``: what the sweep over the users proved, ``certificate_reason`` why nothing.
      ``lists_by_certificate``: how many message lists earned each certificate;
      ``uncertified_users``: the ids of the users whose list earned none, ascending;
      ``unread_users``: those of them whose list could not be read, or not to its end. Their
      earlier rows stay, ``lists`` has the reason, and the next sync reads them first.
    - ``started_at``, ``ended_at``: UTC. ``seconds``: time spent on the run; the time between a
      kill and the sync that resumed it is not in it.
    - ``lists_by_kind``: how many message lists were swept whole (``whole``), were asked at their
      growing end alone (``end``), were gone with their user (``gone``), or could not be read
      (``unread``).
    - ``rows_asked``: rows that a ``linked`` list did not show and that were asked for by id (only
      in mode ``full``).
    - ``resumptions``: how often the run was taken up again. ``error``: what stopped it the last
      time, null where nothing did. ``outage_seconds``: how long the service was down meanwhile.
    """

    run_id: int
    mode: Mode
    resumed: bool
    requests: int
    users: int
    messages: int
    users_added: int
    users_updated: int
    messages_added: int
    messages_updated: int
    deleted: int
    rejects: int
    certificate: str
    certificate_reason: str | None
    lists_by_certificate: dict[str, int] = field(hash=False)
    uncertified_users: tuple[int, ...]
    started_at: datetime
    ended_at: datetime
    seconds: float
    lists_by_kind: dict[str, int] = field(default_factory=dict, hash=False)
    rows_asked: int = 0
    resumptions: int = 0
    error: str | None = None
    outage_seconds: float = 0.0
    unread_users: tuple[int, ...] = ()

    def _repr_html_(self) -> str:
        from backread._display.reports import sync_report_html

        return sync_report_html(self)
