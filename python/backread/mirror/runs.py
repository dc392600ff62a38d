"""Runs of the sync in the database: beginning, resuming, their state and their report."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from backread._files.json import parse_json
from backread.mirror.engine import from_microseconds, timestamp
from backread.mirror.known import Known, StoredRows
from backread.mirror.report import Mode, SyncReport
from backread.mirror.schema import CONTENT_TABLES, CURSOR_NAMES, KNOWN_LIST_NAMES, PROFILE, RUNS
from backread.mirror.store import Store

__all__ = [
    "RESUME_WITHIN",
    "Run",
    "Spent",
    "begin_run",
    "clear",
    "known_to",
    "record_error",
    "report_of",
]

RESUME_WITHIN = timedelta(hours=24)
"""A resumed run rereads lists that it finished or left half-read longer ago than this."""

# The fields of a report that are not columns of `runs`, or have another form there.
DERIVED = {
    "resumed",
    "lists_by_certificate",
    "lists_by_kind",
    "uncertified_users",
    "unread_users",
    "started_at",
    "ended_at",
}


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


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of a part of a run; ``seconds`` by the system clock.

    ``outage_seconds`` is the client's count of the time when the service was down.
    """

    requests: int
    seconds: float
    outage_seconds: float


LONGEST = 100 * 365 * 86_400
"""Seconds: within the range of `timedelta` and the database, and older than any list."""


def begin_run(store: Store, mode: Mode, max_staleness: float | None = None) -> Run:
    """A new run, or the unfinished one, which becomes ``full`` if either mode is.

    Lists that the unfinished run read only at their end are read again if they were last read in
    full longer ago than ``max_staleness`` (seconds).
    """
    now = datetime.now(UTC)
    unfinished = store.rows(
        f"SELECT {', '.join(RESUMED)} FROM runs "
        "WHERE state = 'unfinished' ORDER BY run_id DESC LIMIT 1"
    )
    with store.transaction():
        if not unfinished:
            [(run_id,)] = store.rows("SELECT coalesce(max(run_id), 0) + 1 FROM runs")
            _insert(store, run_id, mode, now)
            return Run(run_id, mode, resumed=False, alone=_is_first(store))
        run = Run(**dict(zip(RESUMED, unfinished[0], strict=True)), resumed=True, alone=False)
        if mode == "full" != run.mode:
            run.mode = mode
            _read_all_again(store, run.run_id)
        if max_staleness is not None:
            stale = timestamp(now - timedelta(seconds=min(max_staleness, LONGEST)))
            _give_back(store, run.run_id, f"kind = 'end' AND coalesce(swept_at <= {stale}, true)")
        _note_seen(store, run.run_id)
        _resume(store, run, now - RESUME_WITHIN)
    return run


def _is_first(store: Store) -> bool:
    return not store.rows("SELECT 1 FROM runs WHERE state = 'finished' LIMIT 1")


def _insert(store: Store, run_id: int, mode: Mode, now: datetime) -> None:
    # Clears what an abandoned run left; finished runs leave nothing.
    clear(store)
    counters = [
        f"0 AS {name}" for name, kind in RUNS if kind in ("BIGINT", "DOUBLE") and name != "run_id"
    ]
    store.rows(
        "INSERT INTO runs BY NAME SELECT ? AS run_id, ? AS mode, 'unfinished' AS state, "
        f"? AS started_at, {', '.join(counters)}",
        [run_id, mode, now],
    )


def clear(store: Store) -> None:
    """Deletes the state that only an unfinished run needs."""
    for table in CONTENT_TABLES:
        store.rows(f"DELETE FROM seen_{table.name}")
    store.rows("DELETE FROM cursors")


def _read_all_again(store: Store, run_id: int) -> None:
    # For a full run, reading only a list's end is not enough.
    _give_back(store, run_id, "kind = 'end'")
    store.rows("DELETE FROM cursors WHERE user_id IS NOT NULL")


def _resume(store: Store, run: Run, since: datetime) -> None:
    run_id = run.run_id
    _give_back(store, run_id, f"ended_at < {timestamp(since)}")
    store.rows("DELETE FROM cursors WHERE started_at < ?", [since])
    store.rows(
        "UPDATE runs SET certificate = NULL, certificate_reason = NULL, users_swept_at = NULL "
        "WHERE run_id = ? AND (users_swept_at IS NULL OR users_swept_at < ?)",
        [run_id, since],
    )
    # If the list of users is read again from its start, none of its rows count as seen.
    if not _swept(store, run_id) and not _has_users_cursor(store):
        store.rows("DELETE FROM seen_users")
    store.rows(
        "DELETE FROM seen_messages WHERE user_id NOT IN "
        "(SELECT user_id FROM lists WHERE run_id = ? "
        "UNION ALL SELECT user_id FROM cursors WHERE user_id IS NOT NULL)",
        [run_id],
    )
    store.rows(
        "UPDATE runs SET mode = ?, resumptions = resumptions + 1 WHERE run_id = ?",
        [run.mode, run_id],
    )


def _note_seen(store: Store, run_id: int) -> None:
    """Records as seen the rows that a run with `Run.alone` did not record."""
    if not _is_first(store):
        return
    if store.rows("SELECT 1 FROM runs WHERE run_id = ? AND resumptions = 0", [run_id]):
        for table in CONTENT_TABLES:
            key = ", ".join(table.key)
            store.rows(f"INSERT INTO seen_{table.name} BY NAME SELECT {key} FROM {table.name}")


def _give_back(store: Store, run_id: int, condition: str) -> None:
    """Assigns lists that this run has read to the run before it, so that they are read again."""
    store.rows(
        f"UPDATE lists SET run_id = {_last_finished()} WHERE run_id = ? AND {condition}", [run_id]
    )


def _last_finished() -> str:
    return "(SELECT coalesce(max(run_id), 0) FROM runs WHERE state = 'finished')"


def _swept(store: Store, run_id: int) -> bool:
    return bool(
        store.rows("SELECT 1 FROM runs WHERE run_id = ? AND users_swept_at IS NOT NULL", [run_id])
    )


def _has_users_cursor(store: Store) -> bool:
    return bool(store.rows("SELECT 1 FROM cursors WHERE user_id IS NULL"))


def known_to(store: Store, run: Run) -> Known:
    """The state that the core needs to continue; see `Known`."""

    def rows(query: str) -> StoredRows:
        return StoredRows(store.connection, query)

    done = (
        f"SELECT DISTINCT user_id FROM lists WHERE run_id = {run.run_id} "
        "AND kind IS DISTINCT FROM 'unread'"
    )
    # The rows of a user missing from the last finished run were recorded as missed, so only the
    # whole list can tell whether they exist.
    lists = (
        f"SELECT {', '.join(KNOWN_LIST_NAMES)} FROM lists WHERE rowid IN "
        f"(SELECT max(rowid) FROM lists GROUP BY user_id) "
        # A resumed run skips lists it has read, and keeps those it could not read as such.
        f"AND run_id >= {_last_finished()} AND (run_id <> {run.run_id} OR kind = 'unread') "
        # Stop retrying the lists of deleted users.
        "AND NOT (kind IS NOT DISTINCT FROM 'unread' AND user_id IN "
        "(SELECT id FROM users WHERE deleted_at IS NOT NULL))"
    )
    [(half_read,)] = store.rows("SELECT count(*) FROM cursors")
    held = (
        "SELECT CAST(NULL AS BIGINT) AS user_id, id FROM seen_users "
        "WHERE EXISTS (SELECT 1 FROM cursors WHERE user_id IS NULL) "
        "UNION ALL SELECT user_id, id FROM seen_messages WHERE user_id IN "
        "(SELECT user_id FROM cursors WHERE user_id IS NOT NULL)"
    )
    # Outer join, because messages are also read for users whose record was rejected.
    users = (
        "SELECT id, any_value(updated_at) AS updated_at, any_value(online_at) AS online_at "
        "FROM seen_users LEFT JOIN users USING (id) GROUP BY id"
    )
    return Known(
        lists=rows(lists),
        done=rows(done) if run.resumed else None,
        cursors=rows(f"SELECT {', '.join(CURSOR_NAMES)} FROM cursors") if half_read else None,
        held=rows(held) if half_read else None,
        users=rows(users) if _swept(store, run.run_id) else None,
        profile=_profile(store),
    )


def _profile(store: Store) -> dict[str, Any] | None:
    try:
        profile = parse_json(store.meta(PROFILE) or "")
    except ValueError:
        return None
    return profile if isinstance(profile, dict) else None


def record_error(store: Store, run: Run, error: BaseException, spent: Spent) -> None:
    """Records in the run what stopped it, and the cost since the last commit."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    with store.transaction():
        store.rows(
            "UPDATE runs SET error = ?, requests = requests + ?, seconds = seconds + ?, "
            "outage_seconds = outage_seconds + ? WHERE run_id = ?",
            [text, spent.requests, spent.seconds, spent.outage_seconds, run.run_id],
        )


def report_of(store: Store, run_id: int) -> SyncReport:
    """The report of a finished run."""
    names = [each.name for each in fields(SyncReport) if each.name not in DERIVED]
    [(*values, certificates, kinds, started, ended)] = store.rows(
        f"SELECT {', '.join(names)}, lists_by_certificate, lists_by_kind, "
        "epoch_us(started_at), epoch_us(ended_at) FROM runs WHERE run_id = ?",
        [run_id],
    )
    uncertified = store.rows(
        "SELECT user_id, kind FROM lists WHERE run_id = ? AND certificate = 'uncertified' "
        "ORDER BY user_id",
        [run_id],
    )
    named = dict(zip(names, values, strict=True))
    return SyncReport(
        **named,
        resumed=named["resumptions"] > 0,
        lists_by_certificate=certificates or {},
        lists_by_kind=kinds or {},
        uncertified_users=tuple(user_id for user_id, _ in uncertified),
        unread_users=tuple(user_id for user_id, kind in uncertified if kind == "unread"),
        started_at=from_microseconds(int(started)),
        ended_at=from_microseconds(int(ended)),
    )
