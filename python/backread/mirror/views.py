"""The readers' tables, as views over the files of one snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backread.mirror.engine import rows_of, scan, timestamp
from backread.mirror.manifest import PUBLISHED, Manifest
from backread.mirror.schema import (
    CONTENT_TABLES,
    POSITION,
    PROFILE,
    SIDE_TABLES,
    TECHNICAL,
    Column,
    Table,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["view_statements"]

CONVERSATIONS = """
CREATE VIEW conversations AS
WITH spoken AS (
    SELECT user_id, id, created_at, read_by_user, read_by_operator, file_url, sender_type,
        coalesce(auto_invitation, false) AS automatic
    FROM messages WHERE deleted_at IS NULL
), opening AS (
    SELECT user_id, min(created_at) AS asked_at
    FROM spoken WHERE sender_type = 'user' GROUP BY user_id
), answer AS (
    SELECT spoken.user_id, opening.asked_at, min(spoken.created_at) AS answered_at
    FROM spoken JOIN opening USING (user_id)
    WHERE spoken.sender_type = 'operator' AND NOT spoken.automatic
        AND spoken.created_at >= opening.asked_at
    GROUP BY ALL
), counted AS (
    SELECT user_id,
        count(*) AS messages,
        count(*) FILTER (WHERE sender_type = 'user') AS user_messages,
        count(*) FILTER (WHERE sender_type = 'operator' AND NOT automatic) AS operator_messages,
        count(*) FILTER (WHERE automatic) AS auto_invitations,
        count(file_url) AS files,
        min(created_at) AS first_message_at,
        max(created_at) AS last_message_at,
        arg_max(sender_type, (created_at, id)) AS last_sender_type,
        count(*) FILTER (WHERE sender_type = 'operator' AND NOT read_by_user) AS unread_by_user,
        count(*) FILTER (WHERE sender_type = 'user' AND NOT read_by_operator)
            AS unread_by_operator
    FROM spoken GROUP BY user_id
)
SELECT
    users.id AS user_id,
    users.name,
    users.email,
    coalesce(counted.messages, 0) AS messages,
    coalesce(counted.user_messages, 0) AS user_messages,
    coalesce(counted.operator_messages, 0) AS operator_messages,
    coalesce(counted.auto_invitations, 0) AS auto_invitations,
    coalesce(counted.files, 0) AS files,
    counted.first_message_at,
    counted.last_message_at,
    counted.last_sender_type,
    date_diff('millisecond', answer.asked_at, answer.answered_at) / 1000
        AS first_response_seconds,
    coalesce(counted.unread_by_user, 0) AS unread_by_user,
    coalesce(counted.unread_by_operator, 0) AS unread_by_operator
FROM users
LEFT JOIN counted ON counted.user_id = users.id
LEFT JOIN answer ON answer.user_id = users.id
WHERE users.deleted_at IS NULL
"""


def view_statements(connection: DuckDBPyConnection, folder: Path, manifest: Manifest) -> list[str]:
    """The statements that create the views over the snapshot."""
    directory = folder / PUBLISHED

    def columns(name: str, declared: tuple[Column, ...]) -> str:
        # Snapshots published by an earlier version lack later tables and columns.
        if name not in manifest.files:
            return ", ".join(f'CAST(NULL AS {kind}) AS "{column}"' for column, kind in declared)
        one_file = scan(directory, manifest.files[name][:1])
        stored = {each[0] for each in rows_of(connection, f"DESCRIBE SELECT * FROM {one_file}")}
        return ", ".join(
            f'"{column}"' if column in stored else f'CAST(NULL AS {kind}) AS "{column}"'
            for column, kind in declared
        )

    # Null means the newest finished run, so that a run need not rewrite unchanged rows.
    seen = f"coalesce(last_seen_at, greatest(first_seen_at, {timestamp(manifest.seen)}))"
    seen += " AS last_seen_at"
    statements = [
        f"CREATE VIEW {table.name} AS "
        f"SELECT {columns(table.name, table.columns)}, first_seen_at, {seen}, deleted_at, "
        f"{columns(table.name, TECHNICAL[-2:])} FROM {_rows(directory, table, manifest)}"
        for table in CONTENT_TABLES
    ]
    statements += [
        f"CREATE VIEW {name} AS SELECT {columns(name, declared)} FROM "
        + (scan(directory, manifest.files[name]) if name in manifest.files else "range(0)")
        for name, declared in SIDE_TABLES.items()
    ]
    profile = f"SELECT CAST(NULL AS VARCHAR) AS {PROFILE} LIMIT 0"
    if PROFILE in manifest.files:
        profile = f"SELECT * FROM {scan(directory, manifest.files[PROFILE])}"
    return [*statements, f"CREATE VIEW {PROFILE} AS {profile}", CONVERSATIONS]


def _rows(directory: Path, table: Table, manifest: Manifest) -> str:
    """The query for the table's rows: those of the parts, with changed rows replaced."""
    parts = scan(directory, manifest.files[table.name])
    changed = manifest.files.get(table.changed, [])
    replaced = manifest.files.get(table.replaced, [])
    if not changed:
        return parts
    stored = f"SELECT * FROM {parts}"
    if replaced:
        # The position is one number per row and, unlike the key, needs no column to be read.
        stored = (
            f"SELECT * EXCLUDE (position) FROM (SELECT *, {POSITION} AS position FROM {parts}) "
            f"ANTI JOIN {scan(directory, replaced)} USING (position)"
        )
    return f"({stored} UNION ALL BY NAME SELECT * FROM {scan(directory, changed)})"
