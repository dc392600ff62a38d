"""Merges the rows of a batch into a table by key, without rewriting unchanged rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from backread.mirror.store.schema import CHANGED, Table
from backread.mirror.store.store import ArrowTable, Store

CHANGED_LISTS = "changed_lists"
"""The lists in which messages came or changed, until they are read to their end: ``user_id``, and
``by_operators`` if only operators wrote them."""


def stage(store: Store, name: str, rows: ArrowTable, columns: tuple[str, ...]) -> None:
    """Copies Arrow rows into the temporary table ``staged``; ``name`` as in `Store.register`."""
    source = store.register(name, rows)
    store.rows(f"CREATE OR REPLACE TEMP TABLE staged AS SELECT {_names(columns)} FROM {source}")


def add_rows(store: Store, table: Table, rows: ArrowTable, now: datetime, run_id: int) -> bool:
    """Inserts the rows if all keys are new and distinct; otherwise inserts none, returns False.

    Does not record them as seen or as unpublished. Runs inside the caller's transaction.
    """
    key = ", ".join(table.key)
    names = _names(table.names)
    source = store.register(table.name, rows)
    [(distinct, held)] = store.execute_prepared(
        f"SELECT (SELECT count(*) FROM (SELECT DISTINCT {key} FROM {source})), "
        f"EXISTS (SELECT 1 FROM {table.name} SEMI JOIN {source} USING ({key}))"
    )
    if held or distinct < rows.num_rows:
        return False
    store.execute_prepared(
        f"INSERT INTO {table.name} BY NAME SELECT {names}, {_added(table, source)} FROM {source}",
        now,
        now,
        run_id,
    )
    return True


def merge_rows(
    store: Store, table: Table, rows: ArrowTable, now: datetime, run_id: int
) -> tuple[int, int]:
    """Adds new rows, updates changed ones, records the keys as seen; returns (added, updated).

    A row that had been marked as deleted loses the mark, and counts as updated; one that was only
    missed by an earlier run does not count. Runs inside the caller's transaction.
    """
    key = ", ".join(table.key)
    user = table.user_column
    changed = f"changed_{table.name}"
    columns = _names(table.names)
    store.rows(
        f"CREATE TEMP TABLE IF NOT EXISTS {changed} AS SELECT {columns}, "
        f"rowid AS held_row, false AS differs, false AS matters FROM {table.name} LIMIT 0"
    )
    source = store.register(table.name, rows)
    [(distinct, low, high)] = store.execute_prepared(
        f"SELECT count(DISTINCT ({key})), min({user}), max({user}) FROM {source}"
    )
    if distinct < rows.num_rows:
        # The last one counts.
        stage(store, table.name, rows, table.names)
        source = "staged"
        store.rows(
            f"DELETE FROM staged WHERE rowid NOT IN (SELECT max(rowid) FROM staged GROUP BY {key})"
        )
    differs = " OR ".join(_differs(name) for name in table.names if name not in table.key)
    same = " AND ".join(f"held.{name} = given.{name}" for name in table.key)
    matters = " OR ".join(
        f"{each.format('held')} IS DISTINCT FROM {each.format('given')}" for each in table.matters
    )
    # The bounds let DuckDB skip row groups without these users; if the users are scattered, the
    # row numbers avoid reading the wide columns of all other rows.
    [(found,)] = store.execute_prepared(
        f"""
        INSERT INTO {changed}
        SELECT {_names(table.names, "given.")},
            held.rowid AS held_row, held.deleted_at IS NOT NULL OR {differs} AS differs,
            held.rowid IS NULL OR held.deleted_at IS NOT NULL OR {matters or "false"} AS matters
        FROM {source} AS given LEFT JOIN (
            SELECT rowid, * FROM {table.name} WHERE rowid IN (
                SELECT rowid FROM {table.name}
                WHERE {user} BETWEEN ? AND ? AND ({key}) IN (SELECT {key} FROM {source}))
        ) AS held ON {same}
        WHERE held.rowid IS NULL OR held.last_seen_at IS NOT NULL OR differs
        """,
        low,
        high,
    )
    store.execute_prepared(f"INSERT INTO seen_{table.name} BY NAME SELECT {key} FROM {source}")
    return _apply_changed(store, table, changed, now, run_id) if found else (0, 0)


def _apply_changed(
    store: Store, table: Table, changed: str, now: datetime, run_id: int
) -> tuple[int, int]:
    [(added,)] = store.rows(
        f"INSERT INTO {table.name} BY NAME SELECT {_names(table.names)}, "
        f"{_added(table, changed)} FROM {changed} WHERE held_row IS NULL",
        [now, now, run_id],
    )
    assignments = ", ".join(
        f'"{name}" = {changed}."{name}"' for name in table.names if name not in table.key
    )
    store.rows(
        f"UPDATE {table.name} SET {assignments}, text_bytes = {table.text_bytes(changed)}, "
        "last_seen_at = NULL, deleted_at = NULL, "
        f"changed_at = CASE WHEN differs THEN ? ELSE {table.name}.changed_at END, "
        f"changed_in_run = CASE WHEN differs THEN ? ELSE {table.name}.changed_in_run END "
        f"FROM {changed} WHERE {table.name}.rowid = {changed}.held_row",
        [now, run_id],
    )
    [(updated,)] = store.rows(
        f"SELECT count(*) FROM {changed} WHERE held_row IS NOT NULL AND differs"
    )
    _note_unpublished(store, table, changed)
    if table.matters:
        make_changed_lists(store)
        store.rows(
            f"INSERT INTO {CHANGED_LISTS} SELECT user_id, "
            "bool_and(coalesce(sender_type = 'operator', false)) "
            f"FROM {changed} WHERE matters GROUP BY user_id"
        )
    store.rows(f"DELETE FROM {changed}")
    return added, updated


def make_changed_lists(store: Store) -> None:
    """Creates `CHANGED_LISTS`, unless it is there."""
    store.rows(
        f"CREATE TEMP TABLE IF NOT EXISTS {CHANGED_LISTS} (user_id BIGINT, by_operators BOOLEAN)"
    )


def note_rejected(store: Store, table: Table, now: datetime, run_id: int) -> int:
    """Records the rejects in ``staged`` with an id as seen; returns how many rows reappeared.

    The stored row of such a record keeps its fields and counts as present: it loses the mark if
    it was marked as deleted. Runs inside the caller's transaction.
    """
    key = ", ".join(table.key)
    rejected = f"SELECT {key} FROM staged WHERE resource = '{table.name}' AND id IS NOT NULL"
    store.rows(f"INSERT INTO seen_{table.name} BY NAME {rejected}")
    # Rows marked as deleted have last_seen_at too.
    missed = f"last_seen_at IS NOT NULL AND ({key}) IN ({rejected})"
    back = update_where(
        store,
        table,
        f"deleted_at IS NOT NULL AND {missed}",
        f"last_seen_at = NULL, deleted_at = NULL, {CHANGED}",
        [now, run_id],
    )
    update_where(store, table, missed, "last_seen_at = NULL")
    return back


def update_where(
    store: Store,
    table: Table,
    condition: str,
    assignments: str,
    values: list[Any] | None = None,
) -> int:
    """Updates the rows that match, records them as unpublished, and returns their number.

    ``values`` fill the parameters of the assignments.
    """
    [(count,)] = store.rows(
        f"CREATE OR REPLACE TEMP TABLE touched AS "
        f"SELECT rowid AS held_row, {', '.join(table.key)} FROM {table.name} WHERE {condition}",
    )
    if count:
        _note_unpublished(store, table, "touched")
        store.rows(
            f"UPDATE {table.name} SET {assignments} FROM touched "
            f"WHERE {table.name}.rowid = touched.held_row",
            values,
        )
    return int(count)


def _note_unpublished(store: Store, table: Table, source: str) -> None:
    store.rows(
        f"INSERT INTO {table.unpublished} BY NAME SELECT {', '.join(table.key)} FROM {source}",
    )


def _added(table: Table, source: str) -> str:
    """What an insertion adds to the rows of the source."""
    return (
        f"{table.text_bytes(source)} AS text_bytes, "
        "? AS first_seen_at, ? AS changed_at, ? AS changed_in_run"
    )


def _names(columns: tuple[str, ...], of: str = "") -> str:
    return ", ".join(f'{of}"{name}"' for name in columns)


def _differs(name: str) -> str:
    return f'held."{name}" IS DISTINCT FROM given."{name}"'
