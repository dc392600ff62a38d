"""Commits one batch of rows together with the resulting state of the run."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from backread.mirror.rights.purge import remove_rejects
from backread.mirror.store.engine import quoted
from backread.mirror.store.merge import (
    CHANGED_LISTS,
    add_rows,
    make_changed_lists,
    merge_rows,
    note_rejected,
    stage,
)
from backread.mirror.store.schema import (
    CONTENT_TABLES,
    LIST_NAMES,
    MESSAGES,
    REJECT_KEY,
    REJECT_NAMES,
    USERS,
    Table,
)
from backread.mirror.sync.deletions import mark_answered, mark_messages_of_deleted
from backread.mirror.sync.runs import set_in_run

if TYPE_CHECKING:
    from backread._backread import SyncBatch
    from backread.mirror.store.store import ArrowTable, Service, Store
    from backread.mirror.sync.runs import Run, Spent

PLACE = r"^\$\.\w+\[\d+\]"
"""The JSON path of a record in its page, at the beginning of the core's reasons."""


def commit(
    store: Store,
    run: Run,
    batch: SyncBatch,
    service: Service,
    *,
    asked: bool,
    spent: Spent,
) -> None:
    """Commits a batch: rows, finished and half-read lists, rejects, and the run's counters.

    ``service`` is its origin, ``spent`` the cost since the last commit. ``asked``: its rows were
    fetched by id.
    """
    now = store.now()
    counts: Counter[str] = Counter()
    with store.transaction():
        # Stored only with the first rows from the service, so a mistyped address is not stored.
        store.set_service(service)
        for table, rows in ((USERS, batch.users), (MESSAGES, batch.messages)):
            if rows is not None and rows.num_rows:
                counts[table.name] = rows.num_rows
                added, updated = _put_rows(store, run, table, rows, now)
                counts[f"{table.name}_added"] = added
                counts[f"{table.name}_updated"] = updated
        if batch.lists is not None and batch.lists.num_rows:
            counts.update(_put_lists(store, run, batch.lists))
        if batch.rejects is not None and batch.rejects.num_rows:
            for table, back in _merge_rejects(store, run, batch.rejects, now):
                counts[f"{table.name}_updated"] += back
        if asked:
            counts["rows_asked"] = counts["users"] + counts["messages"]
        if batch.gone is not None and batch.gone.num_rows and (run.given or run.mode == "full"):
            counts["deleted"] = mark_answered(store, batch.gone, now, run.run_id)
            if run.given:
                unknown = store.rows("SELECT id FROM staged WHERE resource = 'users'")
                run.unknown_users.update(user_id for (user_id,) in unknown)
                # Such a run may end early, and no later one would do it.
                counts["deleted"] += mark_messages_of_deleted(store, run, now)
            counts["rows_asked"] += batch.gone.num_rows if asked else 0
        if batch.audit is not None:
            drawn = "audit_state = ?, lists_to_audit = lists_audited + ?, lists_skipped = ?"
            set_in_run(store, run.run_id, drawn, *batch.audit)
        if (swept := batch.users_report) is not None:
            set_in_run(
                store,
                run.run_id,
                "certificate = ?, certificate_reason = ?, users_swept_at = ?, "
                "users_state = NULL, sweeps = sweeps + 1, sweep_requests = sweep_requests + ?",
                *(swept.certificate, swept.reason, now, swept.requests),
            )
        if batch.users_state is not None:
            set_in_run(store, run.run_id, "users_state = ?", batch.users_state)
        # Most are 0, and DuckDB takes its time for each column.
        figures = dict(counts) | spent._asdict()
        increments = {name: by for name, by in figures.items() if by}
        store.execute_prepared(
            f"UPDATE runs SET {''.join(f'{name} = {name} + ?, ' for name in increments)}"
            "committed_at = ? WHERE run_id = ?",
            *increments.values(),
            now,
            run.run_id,
        )
    run.users += counts["users"]
    run.messages += counts["messages"]
    run.requests += spent.requests
    run.seconds += spent.seconds


def _put_rows(
    store: Store, run: Run, table: Table, rows: ArrowTable, now: datetime
) -> tuple[int, int]:
    # Such a run has seen all stored rows, and the first publication writes all of them.
    if run.alone and add_rows(store, table, rows, now, run.run_id):
        return rows.num_rows, 0
    return merge_rows(store, table, rows, now, run.run_id)


def _put_lists(store: Store, run: Run, lists: ArrowTable) -> dict[str, int]:
    """Stores the lists that the batch ends, and those that it reads on.

    Returns what they show of the hints, to be added to the run.
    """
    names = ", ".join(f'"{name}"' for name in LIST_NAMES)
    state, which = "state AS state", "true"
    if run.given:
        # No later run resumes it, nor does it record a row as missed. A later run must do so,
        # unless only the end of the list is read.
        state, which = "CASE WHEN kind = 'end' THEN state END AS state", "kind <> 'partial'"
    source = store.register("lists", lists)
    store.execute_prepared(
        f"INSERT INTO lists BY NAME SELECT * REPLACE ({state}), ? AS run_id "
        f"FROM (SELECT {names} FROM {source}) WHERE {which}",
        run.run_id,
    )
    if run.given:
        # A run over all users reads them from their start: rows may have been deleted before
        # its position.
        store.execute_prepared(
            "DELETE FROM lists WHERE kind = 'partial' "
            f"AND user_id IN (SELECT user_id FROM {source})"
        )
    return {} if run.given or run.alone else _compare_hints(store, run, source)


def _compare_hints(store: Store, run: Run, lists: str) -> dict[str, int]:
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


def _merge_rejects(
    store: Store, run: Run, rows: ArrowTable, now: datetime
) -> list[tuple[Table, int]]:
    """Stores the rejects; returns how many rows of each table reappeared as rejects."""
    stage(store, "rejects", rows, REJECT_NAMES)
    # `$` is the record then, not its page, in which it moves with every new row.
    store.rows(f"UPDATE staged SET reason = regexp_replace(reason, {quoted(PLACE)}, '$')")
    # The core drops the rows of forgotten users, but an id of another type is no id to it.
    remove_rejects(store, "staged", "forgotten")
    key = ", ".join(REJECT_KEY)
    # Null ids count as equal.
    same = " AND ".join(f"held.{name} IS NOT DISTINCT FROM seen.{name}" for name in REJECT_KEY)
    store.rows(
        f"""
        MERGE INTO rejects AS held USING (
            SELECT {key}, min(seen_at) AS first, max(seen_at) AS last FROM staged GROUP BY ALL
        ) AS seen ON {same}
        WHEN MATCHED THEN UPDATE SET run_id = ?, last_seen_at = seen.last
        WHEN NOT MATCHED THEN INSERT ({key}, run_id, first_seen_at, last_seen_at)
            VALUES ({", ".join(f"seen.{name}" for name in REJECT_KEY)}, ?,
                    seen.first, seen.last)
        """,
        [run.run_id, run.run_id],
    )
    return [(table, note_rejected(store, table, now, run.run_id)) for table in CONTENT_TABLES]
