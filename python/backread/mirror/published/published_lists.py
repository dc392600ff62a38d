"""What is published of the side tables: all of them, and which lists are only partly read."""

from __future__ import annotations

from backread.mirror.store.schema import LISTS, SIDE_TABLES, Column

__all__ = ["PUBLISHED_TABLES", "READ_WHOLE", "side_table_query"]

PRIVATE = ("digest",)
"""Columns that are not published: the keys of the digests stay in the database."""

PUBLISHED_TABLES: dict[str, tuple[Column, ...]] = {
    name: tuple(column for column in columns if column[0] not in PRIVATE)
    for name, columns in SIDE_TABLES.items()
}
"""The columns of the side tables that readers see."""

READ_WHOLE = """coalesce(lists.kind IN ('whole', 'end')
        AND (lists.certificate <> 'uncertified' OR lists.rows >= lists.total), false)"""
"""The SQL condition that all messages of a list were read; an uncertified one may be short."""


def side_table_query(name: str) -> str:
    """The query for the rows of a side table to publish.

    A list that an unfinished run has partly read has the kind ``partial``.
    """
    if name == "runs":
        return "SELECT * FROM runs WHERE state <> 'unfinished'"
    if name != "lists":
        return f"SELECT * FROM {name}"
    names = ", ".join(f'"{column}"' for column, _ in LISTS if column not in ("kind", *PRIVATE))
    half_read = "SELECT user_id FROM cursors WHERE user_id IS NOT NULL"
    return f"""
        SELECT * FROM (
            SELECT {names},
                CASE WHEN user_id IN ({half_read}) THEN 'partial' ELSE kind END AS kind
            FROM lists
            WHERE rowid IN (SELECT max(rowid) FROM lists GROUP BY user_id)
            UNION ALL BY NAME
            SELECT user_id, started_at, 'partial' AS kind FROM cursors
            WHERE user_id IS NOT NULL AND user_id NOT IN (SELECT user_id FROM lists)
        )
    """
