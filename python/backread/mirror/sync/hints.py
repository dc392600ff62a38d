"""What a run finds out about the hints of users, `updated_at` and `online_at`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backread.mirror.store.merge import CHANGED_LISTS, make_changed_lists
from backread.mirror.sync.known import StoredRows

if TYPE_CHECKING:
    from backread._backread import SyncBatch
    from backread.mirror.store.store import Store
    from backread.mirror.sync.runs import Run


def compare_hints(store: Store, run: Run, lists: str) -> dict[str, int]:
    """Counts what ended lists show of the hints; the caller adds the counts to the run.

    Users whose lists have changed although their hints had not moved are added to
    ``run.unannounced``. ``lists`` are the core's rows.
    """
    make_changed_lists(store)
    [(*counts, unannounced)] = store.execute_prepared(
        f"""
        SELECT count(*), count(*) FILTER (moved), count(*) FILTER (moved AND changed),
            count(*) FILTER (moved AND by_operators), count(*) FILTER (audited),
            list(user_id ORDER BY user_id) FILTER (changed AND NOT moved)
        FROM (
            SELECT moved, audited, user_id, by_operators,
                rows_differ OR by_operators IS NOT NULL AS changed
            FROM {lists} LEFT JOIN (
                SELECT user_id, bool_and(by_operators) AS by_operators
                FROM {CHANGED_LISTS} GROUP BY user_id
            ) USING (user_id)
        ) WHERE moved IS NOT NULL
        """
    )
    store.execute_prepared(
        f"DELETE FROM {CHANGED_LISTS} "
        f"WHERE user_id IN (SELECT user_id FROM {lists} WHERE kind <> 'partial')"
    )
    run.unannounced.extend(unannounced or ())
    names = (
        "hints_compared",
        "hints_moved",
        "changes_announced",
        "changes_by_operators",
        "lists_audited",
    )
    return dict(zip(names, counts, strict=True)) | {"lists_unverified": len(unannounced or ())}


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
