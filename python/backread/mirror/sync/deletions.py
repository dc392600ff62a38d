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

SAMPLE = 16
"""How many rows of a table are fetched by id before more than half of it is marked."""
LEAST_DOUBTED = 10
"""Fewer rows are marked without asking."""

NEWEST = "asked_newest"
"""The messages that `_newest` found; there may be one for each user."""


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

    Not for linked lists, whose rows may have moved, nor for lists that left out a row which was
    found by its id: see `rows_to_ask`.
    """
    _distrust_contradicted(store, run)
    missed = "deleted_at IS NULL AND last_seen_at IS NOT NULL"
    deleted = 0
    if _users_have(store, run, "snapshot"):
        marked = [now, now, run.run_id]
        deleted += update_where(store, USERS, missed, f"deleted_at = ?, {CHANGED}", marked)
    deleted += update_where(
        store,
        MESSAGES,
        f"{missed} AND user_id IN ({_proved(run)} EXCEPT {_nameless(run, MESSAGES)})",
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

    All of linked lists. Of other lists of messages the newest, if it is newer than all that the
    list showed: a cache may have answered with an old page. Of a table of which more than half
    would be marked only a sample: a service that fails may answer that a list is empty, which is
    all that a snapshot proves.
    """
    if run.alone:
        return None
    missing = _missing(store, run)
    run.sampled = {table.name: _sample(store, table, rows) for table, rows in missing.items()}
    queries = [
        f"SELECT '{name}' AS resource, * FROM (VALUES {_values(keys)}) AS asked(user_id, id)"
        for name, keys in run.sampled.items()
        if keys
    ]
    if not run.sampled["messages"]:
        newest = _newest(run, missing[MESSAGES])
        # The core reads by another connection, which does not see this table.
        store.rows(f"CREATE OR REPLACE TEMP TABLE {NEWEST} AS {newest}")
        run.asked_newest = True
        queries.append(f"SELECT 'messages' AS resource, user_id, id FROM ({newest})")
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
    return StoredRows(store, query) if count else None


def _missing(store: Store, run: Run) -> dict[Table, str]:
    """The rows that `mark_gone` would mark, as conditions."""
    missing = {}
    if _users_have(store, run, "snapshot"):
        missing[USERS] = _unseen(USERS)
    proved = f"{_proved(run)} EXCEPT {_nameless(run, MESSAGES)}"
    missing[MESSAGES] = f"{_unseen(MESSAGES)} AND user_id IN ({proved})"
    return missing


def _sample(store: Store, table: Table, missing: str) -> list[tuple[int, int]]:
    """Some of these rows, as user id and id, if they are more than half of the table."""
    live = f"FROM {table.name} WHERE deleted_at IS NULL"
    counts = f"(SELECT count(*) {live} AND {missing}), (SELECT count(*) {live})"
    [(gone, all_rows)] = store.rows(f"SELECT {counts}")
    if gone < LEAST_DOUBTED or 2 * gone <= all_rows:
        return []
    key = f"{table.user_column}, id"
    return store.rows(
        f"SELECT {key} {live} AND {missing} ORDER BY hash({key}), {key} LIMIT {SAMPLE}"
    )


def _newest(run: Run, missing: str) -> str:
    """The newest of the missing messages of each list that showed none as new, as a query."""
    # What an earlier part of this run has found by its id looks as if the list had shown it.
    newer = (
        "true"
        if run.resumed
        else "shown.id IS NULL OR missing.id > shown.id OR missing.at > shown.at"
    )
    return f"""
        WITH missing AS (
            SELECT user_id, id, created_at AS at FROM messages
            WHERE deleted_at IS NULL AND {missing}
        ), shown AS (
            SELECT user_id, max(id) AS id, max(created_at) AS at
            FROM messages ANTI JOIN missing USING (user_id, id)
            WHERE deleted_at IS NULL AND user_id IN (SELECT user_id FROM missing)
            GROUP BY user_id
        )
        SELECT user_id, max(missing.id) AS id FROM missing LEFT JOIN shown USING (user_id)
        WHERE {newer}
        GROUP BY user_id ORDER BY user_id
        """


def _values(keys: list[tuple[int, int]]) -> str:
    return ", ".join(f"(CAST({user_id} AS BIGINT), CAST({key} AS BIGINT))" for user_id, key in keys)


def _distrust_contradicted(store: Store, run: Run) -> None:
    """Takes the certificates from lists that left out a row which was found by its id.

    So it does where most rows were left out, unless all rows fetched by id are gone.
    """
    if run.asked_newest:
        store.rows(
            "UPDATE lists SET certificate = 'uncertified', state = NULL, "
            "reason = 'the list left out message ' || found.id || ', which was found by its id' "
            f"FROM (FROM {NEWEST} SEMI JOIN seen_messages USING (user_id, id)) AS found "
            f"WHERE lists.user_id = found.user_id AND lists.run_id = {run.run_id}"
        )
    for table in CONTENT_TABLES:
        keys = run.sampled.get(table.name)
        if not keys:
            continue
        key = f"{table.user_column}, id"
        sampled = f"WHERE ({key}) IN (VALUES {_values(keys)})"
        found = store.rows(f"SELECT {key} FROM seen_{table.name} {sampled} ORDER BY ALL LIMIT 1")
        # Those that were not found were marked; what else came says nothing.
        [(unanswered,)] = store.rows(
            f"SELECT count(*) FROM {table.name} {sampled} AND deleted_at IS NULL"
        )
        if not unanswered:
            continue
        left_out = "the list left out users" if table is USERS else "most lists left out messages"
        reason = f"{left_out}, and {unanswered} of {len(keys)} could not be checked by id"
        if found:
            [(owner, row_id)] = found
            named = f"user {row_id}" if table is USERS else f"message {row_id} of user {owner}"
            reason = f"{left_out}; {named} was found by id"
        if table is USERS:
            uncertified = "certificate = 'uncertified', certificate_reason = ?"
            set_in_run(store, run.run_id, uncertified, reason)
        else:
            store.rows(
                "UPDATE lists SET certificate = 'uncertified', reason = ?, state = NULL "
                f"WHERE user_id IN ({_proved(run)}) AND run_id = {run.run_id}",
                [reason],
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


def _proved(run: Run) -> str:
    return _lists(run, "kind = 'whole' AND certificate IN ('snapshot', 'counted')")


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
