"""Counts values of another type than documented, which a mirror keeps in ``extra``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from backread.mirror.store.engine import Rows
from backread.models import Message, OperatorSender, OtherSender, User, UserAttribute, UserSender

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
