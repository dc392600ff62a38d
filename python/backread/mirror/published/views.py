"""The readers' tables, as views over the files of one snapshot, and their odd values counted.

The same views are in ``chats.duckdb``, for the DuckDB shell and other programs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import fields
from pathlib import Path

from backread._files.access import access_of, flush_directory, flush_file, give_access
from backread._files.unfinished import private_folder, remove_folder
from backread.mirror.published.manifest import Manifest, current_link
from backread.mirror.store.engine import Rows, attach_portable, connect, pattern, rows_of
from backread.mirror.store.folder import VIEWS_LOG_NAME, VIEWS_NAME
from backread.mirror.store.schema import (
    CONTENT_TABLES,
    PROFILE,
    READ_ALL,
    SIDE_TABLES,
    STATES,
    TECHNICAL,
    Column,
)
from backread.mirror.store.store import Store
from backread.models import Message, OperatorSender, OtherSender, User, UserAttribute, UserSender

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

FILES_COUNTED = """
SELECT count(*), count(*) FILTER (sha256 IS NOT NULL AND
    split_part(files.file_url, '?', 1) = split_part(messages.file_url, '?', 1)),
    count(*) FILTER (reason IS NOT NULL)
FROM messages LEFT JOIN files ON files.user_id = messages.user_id AND message_id = messages.id
WHERE messages.file_url <> '' AND deleted_at IS NULL
"""
"""The links of messages that are not deleted, and how many of their files are stored, or failed."""

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


WRITTEN = "views_database"
"""The key in ``meta`` of what identifies the definition that was written last."""


def write_views_database(store: Store, manifest: Manifest) -> None:
    """Writes the file, unless it is there with these views; the snapshot is already published."""
    path = store.folder.absolute() / VIEWS_NAME
    statements = _statements(store.folder, manifest)
    definition = hashlib.sha256("\n".join(statements).encode()).hexdigest()
    if path.is_file() and not path.is_symlink() and store.meta(WRITTEN) == definition:
        return
    access = access_of(path)
    with private_folder(path.parent, path.name) as aside:
        fresh = aside / path.name
        _create(fresh, statements)
        give_access(fresh, access)
        flush_file(fresh)
        try:
            # A program that changed the replaced file may have left its log.
            (path.parent / VIEWS_LOG_NAME).unlink(missing_ok=True)
            fresh.replace(path)
        except OSError:
            if os.name != "nt":
                raise
            # Windows cannot replace an open file; the next publication tries again.
            return
    flush_directory(path.parent)
    with store.transaction():
        store.set_meta(WRITTEN, definition)


def clear_views_database(store: Store) -> None:
    """Has the next publication write the file anew, without what other programs put into it."""
    # A DuckDB shell that was killed may have left rows here.
    remove_folder(store.folder / f"{VIEWS_NAME}.tmp")
    with store.transaction():
        store.drop_meta(WRITTEN)


def _statements(folder: Path, manifest: Manifest) -> list[str]:
    snapshot = current_link(folder) or manifest.folder(folder)
    sources = {
        name: f"read_parquet({_all_files(snapshot / name)}, hive_partitioning = false)"
        for name in manifest.tables
    }
    seen = f"(SELECT max(ended_at) FROM {sources['runs']} WHERE {READ_ALL})"
    return view_statements(sources, seen)


def _all_files(folder: Path) -> str:
    return f"{pattern(folder)[:-1]}/*.parquet'"


def _create(path: Path, statements: list[str]) -> None:
    with closing(connect(None)) as connection:
        attach_portable(connection, path, "chats")
        for each in ("USE chats", *statements, "CHECKPOINT chats", "USE memory", "DETACH chats"):
            rows_of(connection, each)


SENDERS = (("= 'user'", UserSender), ("= 'operator'", OperatorSender))
"""The conditions for a message's sender_type, and the fields that such a sender has."""


def count_odd_values(rows: Rows) -> dict[str, int]:
    """The number of such values in rows that are not marked as deleted, by table and column.

    A field of that name in ``extra`` has another type: otherwise it would be in its column. An
    element of ``user_attributes`` that is no object is in one array with the others of its user,
    which counts once. Rows without ``extra`` cost nothing.

    Args:
        rows: Runs a query over the mirror's tables or a snapshot's views.
    """
    found = rows(f"SELECT name, count(*) FROM ({' UNION ALL '.join(_parts())}) GROUP BY 1")
    return dict(sorted(found))


def _parts() -> Iterator[str]:
    """Queries for the names of odd values, with repetitions."""
    live = "deleted_at IS NULL"
    yield _names("users", User, "extra", live)
    attributes = f"(SELECT unnest(user_attributes) AS each FROM users WHERE {live})"
    yield _names(attributes, UserAttribute, "each.extra", "true", "users.user_attributes.")
    yield _names("messages", Message, "extra", live)
    others = []
    for condition, sender in SENDERS:
        # Without an id a sender's type does not count.
        typed = f"sender_type {condition} AND sender_id IS NOT NULL"
        others.append(f"({typed}) IS NOT TRUE")
        yield _names("messages", sender, "sender_extra", f"{live} AND {typed}", "messages.sender_")
    condition = " AND ".join([live, *others])
    yield _names("messages", OtherSender, "sender_extra", condition, "messages.sender_")


def _names(table: str, kind: type, extra: str, condition: str, prefix: str | None = None) -> str:
    documented = ", ".join(f"'{each.name}'" for each in fields(kind) if each.name != "extra")
    keys = f"SELECT unnest(json_keys({extra})) AS key FROM {table}"
    return (
        f"SELECT '{f'{table}.' if prefix is None else prefix}' || key AS name "
        f"FROM ({keys} WHERE {extra} IS NOT NULL AND {condition}) WHERE key IN ({documented})"
    )
