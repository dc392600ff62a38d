"""Records rows that a run did not see as missed, and marks those proved deleted.

A null ``last_seen_at`` means the newest finished run. Rows marked as deleted always have a time.
"""

from __future__ import annotations

from datetime import datetime

from backread.mirror.store.merge import stage, update_where
from backread.mirror.store.schema import (
    CHANGED,
    CONTENT_TABLES,
    GONE_NAMES,
    MESSAGES,
    READ_ALL,
    USERS,
    Table,
)
from backread.mirror.store.store import ArrowTable, Store
from backread.mirror.sync.known import StoredRows
from backread.mirror.sync.runs import Run, set_in_run

# The new last_seen_at of a missed row: if it is null, the row was seen by the previous run, or
# added in this one.
SEEN_BEFORE = f"greatest(first_seen_at, (SELECT max(ended_at) FROM runs WHERE {READ_ALL}))"

NEWEST = "asked_newest"
"""The newest row of each list that a full run would mark, which is fetched by id before that."""


def note_missed(store: Store, run: Run) -> None:
    """Records the rows that the run did not see, before the run is closed."""
    for table in CONTENT_TABLES:
        missed = update_where(
            store, table, _newly_missed(run, table), f"last_seen_at = {SEEN_BEFORE}"
        )
        if missed and table is MESSAGES:
            # Only the whole list can tell whether they exist: by what another run knew of it, one
            # over given users, only its end would be read.
            store.rows(
                f"UPDATE lists SET state = NULL WHERE run_id <> {run.run_id} "
                "AND state IS NOT NULL AND user_id IN (SELECT user_id FROM touched)"
            )


def mark_gone(store: Store, run: Run, now: datetime) -> int:
    """After `note_missed`, marks rows that a full run's whole lists prove deleted; returns a count.

    Not for linked lists, whose rows may have moved, nor for lists that left out a row which is
    still there by its id: see `rows_to_ask`.
    """
    if not run.alone:
        _distrust_contradicted(store, run)
    missed = "deleted_at IS NULL AND last_seen_at IS NOT NULL"
    deleted = 0
    if _users_have(store, run, "snapshot"):
        marked = [now, now, run.run_id]
        deleted += update_where(store, USERS, missed, f"deleted_at = ?, {CHANGED}", marked)
    deleted += update_where(
        store,
        MESSAGES,
        f"{missed} AND user_id IN ({_whole(run, 'snapshot', 'counted')})",
        f"deleted_at = ?, {CHANGED}",
        [now, now, run.run_id],
    )
    return deleted + mark_messages_of_deleted(store, run, now)


def mark_messages_of_deleted(store: Store, run: Run, now: datetime) -> int:
    """Marks the messages of deleted users as deleted; returns how many."""
    # If the user comes back, the whole list is read.
    store.rows(
        "UPDATE lists SET state = NULL WHERE state IS NOT NULL "
        "AND user_id IN (SELECT id FROM users WHERE deleted_at IS NOT NULL)"
    )
    theirs = "deleted_at IS NULL AND user_id IN (SELECT id FROM users WHERE deleted_at IS NOT NULL)"
    # A run that ends early has not yet recorded them as missed.
    newly_missed = f"{theirs} AND {_newly_missed(run, MESSAGES)}"
    update_where(store, MESSAGES, newly_missed, f"last_seen_at = {SEEN_BEFORE}")
    return update_where(
        store,
        MESSAGES,
        theirs,
        f"deleted_at = ?, last_seen_at = coalesce(messages.last_seen_at, ?), {CHANGED}",
        [now, now, now, run.run_id],
    )


def rows_to_ask(store: Store, run: Run) -> StoredRows | None:
    """The rows that a full run did not see, and asks for by id; None if there are none.

    All of linked lists, and the newest of each other list: a cache may have answered with an old
    page, and a service that fails may answer that a list is empty.
    """
    if run.alone:
        return None
    newest = _missing(run, MESSAGES, "user_id, max(id) AS id", "snapshot", "counted")
    newest += " GROUP BY user_id"
    linked = _missing(run, MESSAGES, "user_id, id", "linked")
    if _users_have(store, run, "snapshot"):
        users = _missing(run, USERS, "max(id) AS user_id, max(id) AS id")
        newest += f" UNION ALL {users} HAVING count(*) > 0"
    elif _users_have(store, run, "linked"):
        linked += f" UNION ALL {_missing(run, USERS, 'id AS user_id, id')}"
    # The core reads by another connection, which does not see this table.
    store.rows(f"CREATE OR REPLACE TEMP TABLE {NEWEST} AS {newest}")
    query = f"{newest} UNION ALL {linked}"
    [(count,)] = store.rows(f"SELECT count(*) FROM ({query})")
    return StoredRows(store, query) if count else None


def _missing(run: Run, table: Table, columns: str, *certificates: str) -> str:
    """The rows that the run did not see, of messages only those in lists with a certificate."""
    listed = f" AND user_id IN ({_whole(run, *certificates)})" if table is MESSAGES else ""
    return (
        f"SELECT '{table.name}' AS resource, {columns} FROM {table.name} "
        f"WHERE deleted_at IS NULL AND {_unseen(table)}{listed}"
    )


def _distrust_contradicted(store: Store, run: Run) -> None:
    """Takes the certificates from lists whose newest row to mark is not known to be gone."""
    for user_id, _, how in store.rows(_contradicted(USERS)):
        reason = f"the list left out user {user_id}, who {how} by id"
        uncertified = "certificate = 'uncertified', certificate_reason = ?"
        set_in_run(store, run.run_id, uncertified, reason)
    store.rows(
        "UPDATE lists SET certificate = 'uncertified', state = NULL, "
        "reason = 'the list left out message ' || asked.id || ', which ' || how || ' by its id' "
        f"FROM ({_contradicted(MESSAGES)}) AS asked "
        f"WHERE lists.user_id = asked.user_id AND lists.run_id = {run.run_id}"
    )


def _contradicted(table: Table) -> str:
    """The rows of `NEWEST` that were not marked when they were fetched by id, as a query."""
    key = f"{table.user_column}, id"
    return (
        f"SELECT {table.user_column} AS user_id, id, "
        f"CASE WHEN {_unseen(table)} THEN 'could not be checked' ELSE 'was found' END AS how "
        f"FROM {table.name} WHERE deleted_at IS NULL AND ({key}) IN "
        f"(SELECT (user_id, id) FROM {NEWEST} WHERE resource = '{table.name}')"
    )


def mark_answered(store: Store, rows: ArrowTable, now: datetime, run_id: int) -> int:
    """Marks rows that were not found by id as deleted; returns how many were not yet marked.

    Runs inside the caller's transaction.
    """
    stage(store, "gone", rows, GONE_NAMES)
    return sum(
        update_where(
            store,
            table,
            f"deleted_at IS NULL AND ({', '.join(table.key)}) IN "
            f"(SELECT {', '.join(table.key)} FROM staged WHERE resource = '{table.name}')",
            f"deleted_at = ?, last_seen_at = coalesce({table.name}.last_seen_at, {SEEN_BEFORE}), "
            f"{CHANGED}",
            [now, now, run_id],
        )
        for table in CONTENT_TABLES
    )


def _newly_missed(run: Run, table: Table) -> str:
    # The older rows of a list certified by its growing end were not sent.
    vouched = _lists(run, "kind = 'end' AND certificate <> 'uncertified'")
    shown_elsewhere = f" AND user_id NOT IN ({vouched})" if table is MESSAGES else ""
    if run.mode == "quick" and table is MESSAGES:
        # A list that was skipped did not show its rows.
        shown_elsewhere += (
            f" AND (user_id IN ({_lists(run, 'true')}) "
            "OR user_id NOT IN (SELECT id FROM seen_users))"
        )
    return f"last_seen_at IS NULL AND {_unseen(table)}{shown_elsewhere}"


def _unseen(table: Table) -> str:
    same = " AND ".join(f"seen.{name} = {table.name}.{name}" for name in table.key)
    return f"NOT EXISTS (SELECT 1 FROM seen_{table.name} AS seen WHERE {same})"


def _lists(run: Run, condition: str) -> str:
    return f"SELECT user_id FROM lists WHERE run_id = {run.run_id} AND {condition}"


def _whole(run: Run, *certificates: str) -> str:
    """The users whose list earned one of these and has no reject that may be any of its rows."""
    earned = " OR ".join(f"certificate = '{each}'" for each in certificates)
    lists = _lists(run, f"kind = 'whole' AND ({earned})")
    return f"{lists} EXCEPT {_nameless(run, MESSAGES)}"


def _nameless(run: Run, table: Table) -> str:
    # A reject without an id may be any row of its list.
    return (
        f"SELECT user_id FROM rejects WHERE run_id = {run.run_id} AND id IS NULL "
        f"AND resource = '{table.name}'"
    )


def _users_have(store: Store, run: Run, certificate: str) -> bool:
    return bool(
        store.rows(
            "SELECT 1 FROM runs WHERE run_id = ? AND certificate = ? "
            f"AND NOT EXISTS ({_nameless(run, USERS)})",
            [run.run_id, certificate],
        )
    )
