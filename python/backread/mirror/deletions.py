"""Records rows that a run did not see as missed, and marks those proved deleted.

A null ``last_seen_at`` means the newest finished run. Rows marked as deleted always have a time.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from backread.mirror.known import StoredRows
from backread.mirror.merge import stage, update_where
from backread.mirror.schema import (
    ALL_USERS,
    CHANGED,
    CONTENT_TABLES,
    GONE_NAMES,
    MESSAGES,
    USERS,
    Table,
)

if TYPE_CHECKING:
    from backread.mirror.runs import Run
    from backread.mirror.source import ArrowTable
    from backread.mirror.store import Store

__all__ = ["mark_answered", "mark_gone", "mark_messages_of_deleted", "note_missed", "rows_to_ask"]

# The new last_seen_at of a missed row: if it is null, the row was seen by the previous run, or
# added in this one.
SEEN_BEFORE = (
    "greatest(first_seen_at, (SELECT max(ended_at) FROM runs "
    f"WHERE state = 'finished' AND {ALL_USERS}))"
)


def note_missed(store: Store, run: Run) -> None:
    """Records the rows that the run did not see, before the run is closed."""
    vouched = _lists(run, "(kind = 'end' AND certificate <> 'uncertified' OR unchanged)")
    for table in CONTENT_TABLES:
        # The rows of a list certified by its growing end, or that did not change, were not sent on.
        shown_elsewhere = f" AND user_id NOT IN ({vouched})" if table is MESSAGES else ""
        update_where(
            store,
            table,
            f"last_seen_at IS NULL AND {_unseen(table)}{shown_elsewhere}",
            f"last_seen_at = {SEEN_BEFORE}",
        )


def mark_gone(store: Store, run: Run, now: datetime) -> int:
    """After `note_missed`, marks rows that a full run's whole lists prove deleted; returns a count.

    Not for linked lists: rows missing there may have moved, see `rows_to_ask`.
    """
    missed = "deleted_at IS NULL AND last_seen_at IS NOT NULL"
    deleted = 0
    if _users_have(store, run, "snapshot"):
        marked = [now, now, run.run_id]
        deleted += update_where(store, USERS, missed, f"deleted_at = ?, {CHANGED}", marked)
    proved = _lists(run, "kind = 'whole' AND certificate IN ('snapshot', 'counted')")
    deleted += update_where(
        store,
        MESSAGES,
        f"{missed} AND user_id IN ({proved} EXCEPT {_nameless(run, MESSAGES)})",
        f"deleted_at = ?, {CHANGED}",
        [now, now, run.run_id],
    )
    return deleted + mark_messages_of_deleted(store, run, now)


def mark_messages_of_deleted(store: Store, run: Run, now: datetime) -> int:
    """Marks the messages of deleted users as deleted; returns how many."""
    # They would say that the messages of a user who comes back did not change, or only at the end.
    store.rows(
        "UPDATE lists SET digest = NULL, grows = NULL "
        "WHERE (digest IS NOT NULL OR grows IS NOT NULL) "
        "AND user_id IN (SELECT id FROM users WHERE deleted_at IS NOT NULL)"
    )
    return update_where(
        store,
        MESSAGES,
        "deleted_at IS NULL AND user_id IN (SELECT id FROM users WHERE deleted_at IS NOT NULL)",
        f"deleted_at = ?, last_seen_at = coalesce(messages.last_seen_at, ?), {CHANGED}",
        [now, now, now, run.run_id],
    )


def rows_to_ask(store: Store, run: Run) -> StoredRows | None:
    """The rows of linked lists that a full run did not see; None if there are none."""
    if run.alone:
        return None
    queries = []
    if _users_have(store, run, "linked"):
        queries.append(
            "SELECT 'users' AS resource, id AS user_id, id FROM users "
            f"WHERE deleted_at IS NULL AND {_unseen(USERS)}"
        )
    linked = _lists(run, "kind = 'whole' AND certificate = 'linked'")
    queries.append(
        "SELECT 'messages' AS resource, user_id, id FROM messages "
        f"WHERE deleted_at IS NULL AND {_unseen(MESSAGES)} "
        f"AND user_id IN ({linked} EXCEPT {_nameless(run, MESSAGES)})"
    )
    query = " UNION ALL ".join(queries)
    [(count,)] = store.rows(f"SELECT count(*) FROM ({query})")
    return StoredRows(store.connection, query) if count else None


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


def _unseen(table: Table) -> str:
    same = " AND ".join(f"seen.{name} = {table.name}.{name}" for name in table.key)
    return f"NOT EXISTS (SELECT 1 FROM seen_{table.name} AS seen WHERE {same})"


def _lists(run: Run, condition: str) -> str:
    return f"SELECT user_id FROM lists WHERE run_id = {run.run_id} AND {condition}"


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
