"""What is published of the side tables: all of them, without what only the core reads."""

from __future__ import annotations

from backread.mirror.store.schema import SIDE_TABLES, STATES, Column

__all__ = ["PUBLISHED_TABLES", "READ_WHOLE", "side_table_query"]

PUBLISHED_TABLES: dict[str, tuple[Column, ...]] = {
    name: tuple(column for column in columns if (name, column[0]) not in STATES)
    for name, columns in SIDE_TABLES.items()
}
"""The columns of the side tables that readers see."""

READ_WHOLE = """coalesce(lists.kind IN ('whole', 'end')
        AND (lists.certificate <> 'uncertified' OR lists.rows >= lists.total), false)"""
"""The SQL condition that all messages of a list were read; an uncertified one may be short."""


def side_table_query(name: str) -> str:
    """The query for the rows of a side table to publish."""
    if name == "runs":
        return "SELECT * FROM runs WHERE state <> 'unfinished'"
    if name == "lists":
        return "SELECT * FROM lists WHERE rowid IN (SELECT max(rowid) FROM lists GROUP BY user_id)"
    return f"SELECT * FROM {name}"
