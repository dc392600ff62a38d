"""Runs of the sync in the database: beginning, resuming, and their state.

A run that its budget ended is ``partial``: it is published, and the next sync resumes it like one
that was killed. A run over given users is separate, and is never resumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from backread.errors import BackreadError
from backread.mirror.published.status import read_evidence
from backread.mirror.store.engine import from_microseconds
from backread.mirror.store.schema import ALL_USERS, CONTENT_TABLES, LAST_FINISHED, RUNS
from backread.mirror.store.store import Store
from backread.mirror.sync.report import Mode

MOST_SWEEPING = 0.04
"""The share of a run's requests that sweeps over the users may take, after the first one.

All nights of a run together are to cost at most 5 % more than a run without a budget.
"""

KILLED_LONG_AGO = timedelta(hours=1)
"""A run that was killed sweeps the users again only after this time."""

THOROUGH: tuple[Mode, ...] = ("quick", "incremental", "full")

QUOTE = ', near "'
"""What precedes the part of an answer that an error quotes."""

UNFINISHED = f"state IN ('unfinished', 'partial') AND {ALL_USERS}"
"""The condition for runs that the next sync resumes."""

RESUMED = ("run_id", "mode", "seconds", "requests", "users", "messages")
"""The fields of a `Run` that are stored, for the sync that resumes it."""


@dataclass(slots=True)
class Run:
    """One row of the table ``runs``; the counters are those of committed work."""

    run_id: int
    mode: Mode
    resumed: bool
    alone: bool
    """True if this run, in this sync, read all rows of the mirror, and nothing was published.

    Such a run does not record rows as seen or unpublished, since all of them are.
    """
    seconds: float = 0.0
    requests: int = 0
    users: int = 0
    messages: int = 0
    given: bool = False
    """True if it reads only the users that the caller gave."""
    unannounced: list[int] = field(default_factory=list)
    """Users whose lists have changed, although their hints had not moved when they were listed."""
    unknown_users: set[int] = field(default_factory=set)
    """Those of the given users that the service does not know."""
    sampled: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Rows that would be marked as deleted and were fetched by id, by table: user id and id."""
    asked_newest: bool = False
    """True once the newest messages missing from lists were fetched by id."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class Spent(NamedTuple):
    """The cost of a part of a run; ``seconds`` by the system clock.

    ``outage_seconds`` is the client's count of the time when the service was down.
    """

    requests: int
    seconds: float
    outage_seconds: float


ADD_SPENT = ", ".join(f"{name} = {name} + ?" for name in Spent._fields)
"""The SQL assignments that add a `Spent` to the columns of a run."""


def set_in_run(store: Store, run_id: int, assignments: str, *values: object) -> None:
    """Changes columns of a run."""
    store.rows(f"UPDATE runs SET {assignments} WHERE run_id = ?", [*values, run_id])


def begin_run(
    store: Store,
    mode: Mode,
    *,
    killed: bool = False,
    moved: bool = False,
    max_staleness: float | None = None,
) -> Run:
    """A new run, or the unfinished one, which gets the more thorough of both modes.

    ``killed`` if that run is ``partial`` only because it was killed and then published. ``moved``
    and ``max_staleness`` are those of this sync.
    """
    if mode == "quick" and (moved or not read_evidence(store.rows).is_trusted):
        mode = "incremental"
    now = datetime.now(UTC)
    with store.transaction():
        unfinished = store.rows(
            f"SELECT {', '.join(RESUMED)}, epoch_us(started_at) FROM runs "
            f"WHERE {UNFINISHED} ORDER BY run_id DESC LIMIT 1"
        )
        if unfinished:
            *values, started = unfinished[0]
            run = Run(
                **dict(zip(RESUMED, values, strict=True)),
                resumed=True,
                alone=False,
                started_at=from_microseconds(int(started)),
            )
            _resume(store, run, mode, now, killed)
        else:
            # Clears what an abandoned run left; finished runs leave nothing.
            clear(store)
            # An unfinished run, of given users, may have read what this one does not find again.
            alone = not store.rows("SELECT 1 FROM runs LIMIT 1")
            run = Run(_next_id(store), mode, resumed=False, alone=alone, started_at=now)
            _insert(store, run)
        moves = "max_staleness = ?, moved = coalesce(moved, false) OR ?"
        set_in_run(store, run.run_id, moves, max_staleness, moved)
    return run


def begin_users_run(store: Store, *, moved: bool = False) -> Run:
    """A run over given users. It does not touch an unfinished run over all users."""
    with store.transaction():
        # Its rows and lists keep the number of one that was killed and is deleted next.
        run = Run(_next_id(store), "incremental", resumed=False, alone=False, given=True)
        # The rows of one that was killed are committed, and no later run resumes it.
        store.rows(f"DELETE FROM runs WHERE state = 'unfinished' AND NOT ({ALL_USERS})")
        _insert(store, run)
        set_in_run(
            store,
            run.run_id,
            "scope = 'users', certificate = 'uncertified', moved = ?, "
            "certificate_reason = 'only the given users were read'",
            moved,
        )
    return run


def keep_newest_lists(store: Store) -> None:
    """Deletes all rows of ``lists`` but the newest of each user, which was written last."""
    store.rows(
        "DELETE FROM lists WHERE rowid NOT IN (SELECT max(rowid) FROM lists GROUP BY user_id)"
    )


def _next_id(store: Store) -> int:
    [(run_id,)] = store.rows("SELECT coalesce(max(run_id), 0) + 1 FROM runs")
    return int(run_id)


def _insert(store: Store, run: Run) -> None:
    counters = [
        f"0 AS {name}"
        for name, kind in RUNS
        if kind in ("BIGINT", "DOUBLE") and name not in ("run_id", "missed_user")
    ]
    store.rows(
        "INSERT INTO runs BY NAME SELECT ? AS run_id, ? AS mode, 'unfinished' AS state, "
        f"? AS started_at, {', '.join(counters)}",
        [run.run_id, run.mode, run.started_at],
    )


def note_verified(store: Store, run: Run, number: int, missed_user: int | None) -> None:
    """Records how many suspects were verified; after a miss a quick run is an incremental one."""
    if missed_user is not None and run.mode == "quick":
        run.mode = "incremental"
    set_in_run(
        store,
        run.run_id,
        "mode = ?, lists_unverified = lists_unverified - ?, "
        "audit_misses = audit_misses + ?, missed_user = coalesce(missed_user, ?)",
        *(run.mode, number, int(missed_user is not None), missed_user),
    )


def clear(store: Store) -> None:
    """Deletes the state that only an unfinished run needs."""
    for table in CONTENT_TABLES:
        store.rows(f"DELETE FROM seen_{table.name}")


def _resume(store: Store, run: Run, mode: Mode, now: datetime, killed: bool) -> None:
    run_id = run.run_id
    # What a run of given users read meanwhile is newer, and so not read by this run.
    keep_newest_lists(store)
    if mode == "full" != run.mode:
        # For a full run, reading only a list's end is not enough.
        store.rows(
            f"UPDATE lists SET run_id = {LAST_FINISHED} WHERE run_id = ? AND kind = 'end'", [run_id]
        )
        store.rows("DELETE FROM lists WHERE run_id = ? AND kind = 'partial'", [run_id])
    run.mode = THOROUGH[max(THOROUGH.index(mode), THOROUGH.index(run.mode))]
    [(was_alone,)] = store.rows(
        "SELECT min(run_id) = ? AND bool_and(resumptions = 0) FROM runs WHERE run_id <= ?",
        [run_id, run_id],
    )
    if was_alone:
        # It did not record the rows that it has seen.
        for table in CONTENT_TABLES:
            key = ", ".join(table.key)
            store.rows(f"INSERT INTO seen_{table.name} BY NAME SELECT {key} FROM {table.name}")
    if _sweeps_again(store, run_id, now, killed):
        unswept = "certificate = NULL, certificate_reason = NULL, users_swept_at = NULL"
        set_in_run(store, run_id, unswept)
    if run.mode == "quick":
        # Only users who are listed in one go may be skipped.
        set_in_run(store, run_id, "users_state = NULL")
    # If the list of users is read again from its start, none of its rows count as seen.
    if store.rows(
        "SELECT 1 FROM runs WHERE run_id = ? AND users_swept_at IS NULL AND users_state IS NULL",
        [run_id],
    ):
        store.rows("DELETE FROM seen_users")
    store.rows(
        "DELETE FROM seen_messages WHERE user_id NOT IN "
        # A list that could not be read is read from its start, unless it has a position.
        "(SELECT user_id FROM lists WHERE run_id = ? AND (kind <> 'unread' OR state IS NOT NULL))",
        [run_id],
    )
    again = "state = 'unfinished', mode = ?, resumptions = resumptions + 1"
    set_in_run(store, run_id, again, run.mode)


def _sweeps_again(store: Store, run_id: int, now: datetime, killed: bool) -> bool:
    """Whether the run reads the list of users, which it may have read, to learn of new users."""
    [(state, requests, sweep_requests, swept_at)] = store.rows(
        "SELECT state, requests, sweep_requests, epoch_us(users_swept_at) FROM runs "
        "WHERE run_id = ?",
        [run_id],
    )
    if swept_at is None:
        return True
    recent = from_microseconds(int(swept_at)) > now - KILLED_LONG_AGO
    # The first sweep does not count; another one costs what the earlier ones did.
    affordable = sweep_requests <= MOST_SWEEPING * requests
    budget_ended_it = state == "partial" and not killed
    return affordable and (budget_ended_it or not recent)


def record_error(store: Store, run: Run, error: BaseException, spent: Spent) -> None:
    """Records in the run what stopped it, and the cost since the last commit."""
    with store.transaction():
        set_in_run(store, run.run_id, f"error = ?, {ADD_SPENT}", error_text(error), *spent)
    run.requests += spent.requests
    run.seconds += spent.seconds


def error_text(error: BaseException) -> str:
    """What the mirror keeps of an error."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    # Of an answer that is quoted, only the request is kept: the mirror may hold no names.
    if isinstance(error, BackreadError) and QUOTE in text:
        request = str(error).partition(": ")[0]
        text = f"{type(error).__name__}: {request}: the answer does not have the documented shape"
    return text
