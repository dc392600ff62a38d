"""Rows of one batch into a table: each stands once by its key, unchanged ones are left alone."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from backread.mirror.schema import Table

if TYPE_CHECKING:
    from backread.mirror.source import ArrowTable
    from backread.mirror.store import Store

__all__ = ["add_rows", "merge_rows", "note_rejected", "stage", "update_where"]


def stage(store: Store, name: str, rows: ArrowTable, columns: tuple[str, ...]) -> None:
    """Copies Arrow rows into the temporary table ``staged``; ``name`` as in `Store.given`."""
    with store.given(name, rows) as given:
        store.rows(f"CREATE OR REPLACE TEMP TABLE staged AS SELECT {_names(columns)} FROM {given}")


def add_rows(store: Store, table: Table, rows: ArrowTable, now: datetime) -> bool:
    """Adds the rows if none of them is held and none stands twice; else adds none and is False.

    Notes nothing: neither that they were seen nor that they are unpublished. Runs inside the
    caller's transaction.
    """
    key = ", ".join(table.key)
    names = _names(table.names)
    with store.given(table.name, rows) as given:
        [(distinct, held)] = store.rows(
            f"SELECT (SELECT count(*) FROM (SELECT DISTINCT {key} FROM {given})), "
            f"EXISTS (SELECT 1 FROM {table.name} SEMI JOIN {given} USING ({key}))"
        )
        if held or distinct < rows.num_rows:
            return False
        store.again(
            f"INSERT INTO {table.name} ({names}, first_seen_at) SELECT {names}, ? FROM {given}",
            now,
        )
    return True


def merge_rows(store: Store, table: Table, rows: ArrowTable, now: datetime) -> tuple[int, int]:
    """Adds what is new, updates what differs, notes the keys as seen; gives (added, updated).

    A row that had been marked as gone loses the mark, and counts as updated. One that only was
    missed by a run before does not. Runs inside the caller's transaction.
    """
    stage(store, table.name, rows, table.names)
    key = ", ".join(table.key)
    user = table.user_column
    [(count, distinct, low, high)] = store.rows(
        f"SELECT count(*), count(DISTINCT ({key})), min({user}), max({user}) FROM staged",
    )
    if distinct < count:
        store.rows(
            f"DELETE FROM staged WHERE rowid NOT IN (SELECT max(rowid) FROM staged GROUP BY {key})",
        )
    differs = " OR ".join(_differs(name) for name in table.names if name not in table.key)
    # The bounds let DuckDB skip the row groups that cannot hold these users; where the users lie
    # scattered, the row numbers keep it from reading the wide columns of all the others.
    [(changed,)] = store.rows(
        f"""
        CREATE OR REPLACE TEMP TABLE changed AS
        SELECT staged.*, held.rowid AS held_row, held.deleted_at IS NOT NULL OR {differs} AS differs
        FROM staged LEFT JOIN (
            SELECT rowid, * FROM {table.name} WHERE rowid IN (
                SELECT rowid FROM {table.name}
                WHERE {user} BETWEEN ? AND ? AND {user} IN (SELECT {user} FROM staged))
        ) AS held ON {" AND ".join(f"held.{name} = staged.{name}" for name in table.key)}
        WHERE held.rowid IS NULL OR held.last_seen_at IS NOT NULL OR differs
        """,
        [low, high],
    )
    store.rows(f"INSERT INTO seen_{table.name} SELECT {key} FROM staged")
    return _apply_changed(store, table, now) if changed else (0, 0)


def _apply_changed(store: Store, table: Table, now: datetime) -> tuple[int, int]:
    [(added,)] = store.rows(
        f"INSERT INTO {table.name} ({_names(table.names)}, first_seen_at) "
        f"SELECT {_names(table.names)}, ? FROM changed WHERE held_row IS NULL",
        [now],
    )
    assignments = ", ".join(
        f'"{name}" = changed."{name}"' for name in table.names if name not in table.key
    )
    store.rows(
        f"UPDATE {table.name} SET {assignments}, last_seen_at = NULL, deleted_at = NULL "
        f"FROM changed WHERE {table.name}.rowid = changed.held_row",
    )
    [(updated,)] = store.rows("SELECT count(*) FROM changed WHERE held_row IS NOT NULL AND differs")
    _note_unpublished(store, table, "changed")
    return added, updated


def note_rejected(store: Store, table: Table) -> int:
    """Notes the rejects in ``staged`` that have an id as seen; gives how many came back.

    The row that the mirror holds of such a record keeps its fields, and is not gone: where it had
    been marked, it loses the mark. Runs inside the caller's transaction.
    """
    key = ", ".join(table.key)
    rejected = f"SELECT {key} FROM staged WHERE resource = '{table.name}' AND id IS NOT NULL"
    store.rows(f"INSERT INTO seen_{table.name} {rejected}")
    # A row that is marked as gone has last_seen_at too.
    missed = f"last_seen_at IS NOT NULL AND ({key}) IN ({rejected})"
    back = update_where(
        store,
        table,
        f"deleted_at IS NOT NULL AND {missed}",
        "last_seen_at = NULL, deleted_at = NULL",
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
    """Updates the rows that meet the condition, notes them as unpublished, and gives their number.

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
        f"INSERT INTO {table.unpublished} SELECT {', '.join(table.key)} FROM {source}",
    )


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _differs(name: str) -> str:
    return f'held."{name}" IS DISTINCT FROM staged."{name}"'
