"""Cuts a table into files by ranges of user ids, and finds the ranges whose rows changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from backread.mirror.published.manifest import DataFile
from backread.mirror.store.schema import TECHNICAL, Table
from backread.mirror.store.store import Store

FILE_BYTES = 64 * 2**20
"""The approximate size in memory of the rows of a file, which bounds what a sort needs."""

MOST_FILES = 2
"""A table with this many times the files that its rows need is written in full."""

LOWEST = -(2**63)
BYTES_PER_VALUE = 8


def plan_files(store: Store, table: Table, held: Sequence[DataFile]) -> list[DataFile]:
    """The files of the next snapshot, in the order of their ranges: held ones, and new ones.

    A new one, not written yet, has no name.

    Args:
        store: The database.
        table: The table to publish.
        held: Its files in the earlier snapshot; empty to write it in full.
    """
    needed = 1 + sum(each.row_bytes for each in held) // FILE_BYTES
    if not held or len(held) > MOST_FILES * needed:
        return _cut(store, table, None, None)
    changed = _changed(store, table, held)
    plan: list[DataFile] = []
    for is_changed, group in groupby(enumerate(held), lambda item: item[0] in changed):
        files = [file for _, file in group]
        plan += _cut(store, table, files[0].low, files[-1].high) if is_changed else files
    return plan


def _changed(store: Store, table: Table, held: Sequence[DataFile]) -> set[int]:
    """The positions of the files in whose range a row changed, came or went."""
    if not store.rows(f"SELECT 1 FROM {table.unpublished} LIMIT 1"):
        return set()
    user = table.user_column
    ranges = ", ".join(
        f"({at}, {LOWEST if each.low is None else each.low})" for at, each in enumerate(held)
    )
    found = store.rows(
        f"SELECT DISTINCT place FROM (SELECT DISTINCT {user} AS owner FROM {table.unpublished}) "
        f"ASOF JOIN (SELECT place::BIGINT AS place, low::BIGINT AS low FROM (VALUES {ranges}) "
        "AS ranges(place, low)) ON owner >= low"
    )
    return {place for (place,) in found}


def _cut(store: Store, table: Table, low: int | None, high: int | None) -> list[DataFile]:
    """Cuts a range into pieces of about `FILE_BYTES`; a user's rows are in one piece.

    One without rows is one piece all the same, so that a reader by path finds the columns.
    """
    user = table.user_column
    rows = f"{table.name} WHERE {within(table, low, high)}"
    other_bytes = BYTES_PER_VALUE * len(table.columns + TECHNICAL)
    found = store.rows(
        f"""
        WITH by_user AS (
            SELECT {user} AS owner, count(*) AS rows, sum({other_bytes} + text_bytes) AS bytes
            FROM {rows} GROUP BY ALL
        ), summed AS (
            SELECT *, sum(bytes) OVER (ORDER BY owner) - bytes AS before,
                sum(bytes) OVER () AS total
            FROM by_user
        ), cut AS (
            SELECT *, greatest(1, round(total / {FILE_BYTES})) AS pieces FROM summed
        )
        SELECT min(owner), sum(rows)::BIGINT, sum(bytes)::BIGINT
        FROM cut GROUP BY floor(before / total * pieces) ORDER BY 1
        """
    )
    found = found or [(low, 0, 0)]
    lows = [low, *(first for first, _, _ in found[1:]), high]
    return [
        DataFile("", rows, 0, size, low, high)
        for (_, rows, size), (low, high) in zip(found, pairwise(lows), strict=True)
    ]


def within(table: Table, low: int | None, high: int | None) -> str:
    """The SQL condition for the rows of the users from ``low`` up to ``high``."""
    user = table.user_column
    limits = [f"{user} >= {low}"] if low is not None else []
    limits += [f"{user} < {high}"] if high is not None else []
    return " AND ".join(limits) or "true"
