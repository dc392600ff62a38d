"""Upgrades the database of a mirror that an earlier version made."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from backread.mirror.schema import create_table, tables

__all__ = ["CONVERSIONS", "upgrade_statements"]

CONVERSIONS: dict[int, tuple[str, ...]] = {
    2: (
        # Version 1 read all lists in full, except those of users who disappeared meanwhile.
        """
        UPDATE lists SET kind = CASE
            WHEN reason LIKE '%the user was gone%' THEN 'gone' ELSE 'whole' END
        """,
        "UPDATE lists SET swept_at = ended_at WHERE kind = 'whole'",
        "UPDATE runs SET rows_asked = 0",
        # The next publication rewrites everything that version 1 published.
        "DROP TABLE dirty",
    ),
    3: ("UPDATE runs SET outage_seconds = 0",),
    4: (
        *(
            f"UPDATE {table} SET changed_at = first_seen_at, changed_in_run = coalesce((SELECT "
            f"min(run_id) FROM runs WHERE runs.ended_at >= {table}.first_seen_at), 0)"
            for table in ("users", "messages")
        ),
        # Later commits must be later than these rows, even if a clock was wrong.
        """
        UPDATE runs SET sweeps = 0, sweep_requests = 0, committed_at = (
            SELECT max(changed_at) FROM (
                SELECT changed_at FROM users UNION ALL SELECT changed_at FROM messages))
        """,
    ),
}
"""SQL by version, which converts the rows of a mirror of the version before."""


def upgrade_statements(version: int, stored: Mapping[str, AbstractSet[str]]) -> list[str]:
    """The statements that upgrade a mirror; none if it has every table and column already.

    Args:
        version: its schema version.
        stored: the names of its columns, by table.
    """
    statements = []
    for name, columns in tables().items():
        if name not in stored:
            statements.append(create_table(name, columns))
            continue
        statements += [
            f'ALTER TABLE {name} ADD COLUMN "{column}" {kind}'
            for column, kind in columns
            if column not in stored[name]
        ]
    for later in sorted(CONVERSIONS):
        if later > version:
            statements += CONVERSIONS[later]
            statements.append(f"UPDATE meta SET value = '{later}' WHERE key = 'schema_version'")
    return statements
