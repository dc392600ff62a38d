"""What a sync says of itself: `SyncProgress` while it runs, `SyncReport` at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

__all__ = ["Mode", "Phase", "SyncProgress", "SyncReport"]

Mode: TypeAlias = Literal["incremental", "full"]
"""How a sync reads, see `Mirror.sync`."""

Phase: TypeAlias = Literal["reading", "finishing", "publishing", "finished"]
"""What a sync is doing: reading the service, closing the run, writing Parquet, nothing more."""


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """How far a sync has come, as of its latest commit.

    ``users``, ``messages`` (rows read) and ``requests`` count the whole run, what it did before it
    was killed and resumed included. ``users_total`` is the service's own count of users, ``None``
    while unknown. ``seconds`` are those spent on the run.
    """

    users: int
    users_total: int | None
    messages: int
    requests: int
    seconds: float
    phase: Phase


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one run of a sync read and changed. All numbers but ``seconds`` are counts.

    - ``run_id`` counts the runs of this mirror from 1. ``resumed`` is true where the run began in
      an earlier sync that did not end; the counts are then those of both.
    - ``users`` and ``messages`` are rows read from the service in ``requests`` requests; a row
      that was read once more after a kill counts again.
    - ``users_added``, ``messages_added``: rows the mirror did not have. ``users_updated``,
      ``messages_updated``: rows it had that differed, or that had been marked as gone; a row that
      a run before had not shown and that is as it was does not count.
    - ``deleted``: users and messages newly marked with ``deleted_at`` (only in mode ``full``).
    - ``rejects``: records that did not fit (interface 2) and went to the table ``rejects``.
    - ``certificate``: what the sweep over the users proved, ``certificate_reason`` why nothing.
      ``lists_by_certificate``: how many message lists earned each certificate;
      ``uncertified_users``: the ids of the users whose list earned none, ascending.
    - ``started_at``, ``ended_at``: UTC. ``seconds``: time spent on the run; the time between a
      kill and the sync that resumed it is not in it.
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
