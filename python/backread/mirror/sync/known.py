"""The stored state, and the given users, that are passed to the core at the start of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from backread._files.json import parse_json
from backread.errors import MirrorError
from backread.mirror.store.engine import named_errors, rows_of, stream_of
from backread.mirror.store.schema import ALL_USERS, LAST_FINISHED, PROFILE
from backread.mirror.store.store import Store
from backread.mirror.sync.runs import Run

if TYPE_CHECKING:
    from backread._backread import SyncBatch


class StoredRows:
    """The rows of a query over the tables, as an Arrow stream; each call runs the query again."""

    def __init__(self, store: Store, query: str) -> None:
        self._store = store
        self._query = query

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # The core calls this, so the errors are DuckDB's own here.
        with named_errors(self._store.folder):
            # An unfinished stream blocks its connection, so it gets a separate one.
            cursor = self._store.connection.cursor()
            # It has the settings of a new connection.
            rows_of(cursor, "USE mirror")
            return stream_of(cursor, self._query, requested_schema)


@dataclass(frozen=True, slots=True)
class Known:
    """The state of the mirror that the core needs; None for what is empty.

    - ``lists``: the newest row of `schema.LISTS` of each user that this run or the one before it
      has read: ``user_id``, ``kind``, ``checked_at``, ``swept_at``, ``state`` and
      ``of_this_run``.
    - ``users_state``: where to continue the list of users, if it is half-read.
    - ``held``: the ids in half-read lists that this run has committed (``user_id``, null for
      users, and ``id``).
    - ``users``: the users read by this run, with ``updated_at`` and ``online_at``, if the sweep
      over them is finished.
    - ``profile``: the stored service profile; of another backread it may hold other keys.
    - ``audit``: what this run has drawn for its audit, if it is a quick one.
    - ``forgotten``: the users (``user_id``) whose rows must not come back.
    """

    lists: StoredRows | None = None
    users_state: str | None = None
    held: StoredRows | None = None
    users: StoredRows | None = None
    profile: dict[str, Any] | None = None
    forgotten: StoredRows | None = None
    audit: str | None = None


def given_users(store: Store, user_ids: Sequence[int]) -> StoredRows:
    """The users as rows; raises `MirrorError` if one of them was forgotten."""
    values = ", ".join(f"({user_id})" for user_id in sorted({*user_ids}))
    query = f"SELECT CAST(user_id AS BIGINT) AS user_id FROM (VALUES {values}) AS given(user_id)"
    forgotten = store.rows(f"SELECT user_id FROM forgotten SEMI JOIN ({query}) USING (user_id)")
    if forgotten:
        raise MirrorError(
            f"user {forgotten[0][0]} was forgotten in this mirror and is not read again; leave the "
            "user out"
        )
    return StoredRows(store, query)


def known_to(store: Store, run: Run) -> Known:
    """The state that the core needs to begin or to continue."""

    def rows(query: str) -> StoredRows:
        return StoredRows(store, query)

    of_this_run, state = f"run_id = {run.run_id}", "state"
    if run.given:
        # What an unfinished run has read is not yet compared with what was there before.
        unfinished = f"SELECT run_id FROM runs WHERE state <> 'finished' AND {ALL_USERS}"
        of_this_run, state = "false", f"CASE WHEN run_id NOT IN ({unfinished}) THEN state END"
    # The rows of a user missing from the last finished run were recorded as missed, so only the
    # whole list can tell whether they exist.
    lists = (
        f"SELECT user_id, kind, checked_at, swept_at, {state} AS state, "
        f"{of_this_run} AS of_this_run "
        "FROM lists WHERE rowid IN "
        f"(SELECT max(rowid) FROM lists GROUP BY user_id) AND run_id >= {LAST_FINISHED} "
        # Stop retrying the lists of deleted users.
        "AND NOT (kind = 'unread' AND user_id IN "
        "(SELECT id FROM users WHERE deleted_at IS NOT NULL))"
    )
    forgotten = store.rows("SELECT 1 FROM forgotten LIMIT 1")
    known = Known(
        lists=rows(lists),
        profile=_profile(store),
        forgotten=rows("SELECT user_id FROM forgotten") if forgotten else None,
    )
    if run.given:
        return known
    [(users_state, audit, swept)] = store.rows(
        "SELECT users_state, audit_state, users_swept_at IS NOT NULL FROM runs WHERE run_id = ?",
        [run.run_id],
    )
    half_read = (
        f"SELECT user_id FROM lists WHERE run_id = {run.run_id} "
        "AND kind IN ('partial', 'unread') AND state IS NOT NULL"
    )
    held = (
        "SELECT CAST(NULL AS BIGINT) AS user_id, id FROM seen_users "
        f"WHERE {users_state is not None} UNION ALL "
        f"SELECT user_id, id FROM seen_messages WHERE user_id IN ({half_read})"
    )
    # A sweep that is not proved may have missed some that are known. Outer join, because messages
    # are also read for users whose record was rejected.
    missed = (
        "SELECT id FROM users WHERE deleted_at IS NULL "
        "AND id NOT IN (SELECT user_id FROM lists WHERE kind = 'gone') AND EXISTS "
        f"(SELECT 1 FROM runs WHERE run_id = {run.run_id} AND certificate = 'uncertified')"
    )
    # Only users whose row this run has read may be skipped.
    listed = "true"
    if run.mode == "quick":
        listed = (
            "id IN (SELECT id FROM seen_users) AND id NOT IN (SELECT id FROM rejects "
            f"WHERE resource = 'users' AND id IS NOT NULL AND run_id = {run.run_id})"
        )
    hints = ", ".join(
        f"any_value({name}) FILTER ({listed}) AS {name}" for name in ("updated_at", "online_at")
    )
    users = (
        f"SELECT id, {hints} "
        f"FROM (SELECT id FROM seen_users UNION ALL {missed}) LEFT JOIN users USING (id) "
        "GROUP BY id"
    )
    return replace(
        known,
        users_state=users_state,
        held=rows(held) if run.resumed or audit is not None else None,
        users=rows(users) if swept else None,
        audit=audit,
    )


def _profile(store: Store) -> dict[str, Any] | None:
    try:
        profile = parse_json(store.meta(PROFILE) or "")
    except ValueError:
        return None
    return profile if isinstance(profile, dict) else None


def users_to_ask(store: Store, user_ids: Iterable[int]) -> StoredRows:
    """The users, to be fetched by id."""
    values = ", ".join(f"(CAST({user_id} AS BIGINT))" for user_id in user_ids)
    return StoredRows(
        store, f"SELECT 'users' AS resource, id AS user_id, id FROM (VALUES {values}) AS asked(id)"
    )


def verified(store: Store, batch: SyncBatch) -> dict[int, bool]:
    """The users that were fetched by id, and whether their hints are still as they were listed."""
    found: dict[int, bool] = {}
    if batch.users is not None:
        users = store.register("users", batch.users)
        found |= store.rows(
            f"SELECT id, fetched.updated_at IS NOT DISTINCT FROM held.updated_at "
            "AND fetched.online_at IS NOT DISTINCT FROM held.online_at "
            f"FROM {users} AS fetched LEFT JOIN users AS held USING (id)"
        )
    if batch.gone is not None:
        gone = store.register("gone", batch.gone)
        found |= store.rows(f"SELECT id, false FROM {gone}")
    return found
