"""The readers' tables, as views over the files of one snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from backread.mirror.store.schema import (
    CONTENT_TABLES,
    PROFILE,
    SIDE_TABLES,
    STATES,
    TECHNICAL,
    Column,
)

PUBLISHED_TABLES: dict[str, tuple[Column, ...]] = {
    name: tuple(column for column in columns if (name, column[0]) not in STATES)
    for name, columns in SIDE_TABLES.items()
}
"""The columns of the side tables that readers see."""

READ_WHOLE = """coalesce(lists.kind IN ('whole', 'end')
        AND (lists.certificate <> 'uncertified' OR lists.rows >= lists.total), false)"""
"""The SQL condition that all messages of a list were read; an uncertified one may be short."""

HAS_READ = "(state = 'finished' OR committed_at IS NOT NULL)"
"""The condition for runs that read something; the requests of a budget may all be refused."""

LAST_READ = f"""
SELECT *, CASE state WHEN 'finished' THEN ended_at ELSE committed_at END AS as_of
FROM runs WHERE {HAS_READ} ORDER BY scope IS NULL DESC, run_id DESC LIMIT 1
"""
"""The newest run over all users that read something, else of given users; ``as_of`` is when."""

LISTS = """
SELECT coalesce(lists.certificate, CASE WHEN lists.user_id IS NULL THEN 'never read'
    ELSE 'uncertified' END) AS earned, count(*)
FROM users LEFT JOIN lists ON lists.user_id = users.id
WHERE users.deleted_at IS NULL GROUP BY earned ORDER BY count(*) DESC, earned
"""
"""The number of message lists by their certificate, of users that are not deleted."""

CONVERSATIONS = """
WITH spoken AS (
    SELECT user_id, id, created_at, read_by_user, read_by_operator, file_url, sender_type,
        coalesce(auto_invitation, false) AS automatic
    FROM ({messages}) AS messages WHERE deleted_at IS NULL
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
        arg_max_null(sender_type, (created_at, id)) AS last_sender_type,
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
    CASE WHEN {read_whole}
        THEN date_diff('millisecond', answer.asked_at, answer.answered_at) / 1000
    END AS first_response_seconds,
    coalesce(counted.unread_by_user, 0) AS unread_by_user,
    coalesce(counted.unread_by_operator, 0) AS unread_by_operator,
    {read_whole} AS complete,
    lists.checked_at
FROM ({users}) AS users
LEFT JOIN counted ON counted.user_id = users.id
LEFT JOIN answer ON answer.user_id = users.id
LEFT JOIN ({lists}) AS lists ON lists.user_id = users.id
WHERE users.deleted_at IS NULL
"""


def view_statements(sources: Mapping[str, str], seen: str) -> list[str]:
    """The statements that create the views; see `select_statements`."""
    return [
        f"CREATE VIEW {name} AS {statement}"
        for name, statement in select_statements(sources, seen).items()
    ]


def select_statements(sources: Mapping[str, str], seen: str) -> dict[str, str]:
    """The query of each view, by name.

    Args:
        sources: The rows of each published table, as an SQL table expression.
        seen: The end of the newest finished run, as an SQL expression.
    """
    found: dict[str, str] = {}
    for table in CONTENT_TABLES:
        found[table.name] = _select(table.name, table.columns + TECHNICAL, sources, seen)
    for name, declared in PUBLISHED_TABLES.items():
        # `rejects` has a column of this name too, which is never null.
        found[name] = _select(name, declared, sources, None)
    found[PROFILE] = _select(PROFILE, ((PROFILE, "VARCHAR"),), sources, None)
    found["conversations"] = CONVERSATIONS.format(
        users=found["users"],
        messages=found["messages"],
        lists=found["lists"],
        read_whole=READ_WHOLE,
    )
    return found


def _select(
    name: str,
    declared: tuple[Column, ...],
    sources: Mapping[str, str],
    seen: str | None,
) -> str:
    if name not in sources:
        # No profile is published unless a sync was given one.
        nulls = ", ".join(f'CAST(NULL AS {kind}) AS "{column}"' for column, kind in declared)
        return f"SELECT {nulls} LIMIT 0"
    chosen = ", ".join(_column(each, seen) for each, _ in declared)
    return f"SELECT {chosen} FROM {sources[name]}"


def _column(name: str, seen: str | None) -> str:
    if seen is not None and name == "last_seen_at":
        # Null means the newest run that read all lists, so that a run need not rewrite unchanged
        # rows. A row of a later run was seen when it came.
        return f"coalesce(last_seen_at, greatest(first_seen_at, {seen})) AS last_seen_at"
    return f'"{name}"'


def side_table_query(name: str) -> str:
    """The query for the rows of a side table to publish."""
    if name == "runs":
        return "SELECT * FROM runs WHERE state <> 'unfinished'"
    if name == "lists":
        return "SELECT * FROM lists WHERE rowid IN (SELECT max(rowid) FROM lists GROUP BY user_id)"
    return f"SELECT * FROM {name}"
