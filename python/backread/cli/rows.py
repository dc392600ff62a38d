"""Rows of the command: JSON as sent, and users and messages as columns for tables and CSV.

The columns are those of the mirror: the interface's fields, a message's sender in the columns
``sender_…``, all other fields and values of another type as JSON in ``extra``.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from backread._client.columns import MESSAGES, USERS, cell_of
from backread.cli.text import escaped
from backread.models import Message, User, UserAttribute

USER_COLUMNS = tuple(column.name for column in USERS)
MESSAGE_COLUMNS = tuple(column.name for column in MESSAGES)

# Text that was read has no half of a surrogate pair.
MARK = "\ud800"
UNQUOTED = re.compile(f'"{MARK}([^"]*)"')

TIMES = frozenset(column.name for column in (*USERS, *MESSAGES) if column.kind == "datetime")
"""The columns with times."""

FIRST_SHOWN = (
    "body",
    "created_at",
    "sender_type",
    "user_id",
    "id",
    "sender_name",
    "sender_forename",
)
"""The columns of messages that are shown first next to the body, if not all of them fit."""


def user_row(user: User) -> list[object]:
    """One user's values in the order of USER_COLUMNS; None for what is null or missing."""
    return [_value(cell_of(user, name)) for name in USER_COLUMNS]


def message_row(message: Message) -> list[object]:
    """One message's values in the order of MESSAGE_COLUMNS."""
    return [_value(cell_of(message, name)) for name in MESSAGE_COLUMNS]


def with_user(user_id: int | None, sent: Any) -> Any:
    """A message as sent, with its user's id in front of its own fields."""
    named = {"user_id": user_id}
    return named | sent | named if isinstance(sent, dict) else sent


def as_json(value: object) -> str:
    """Any JSON value on one line, in its own script; what is not seen is escaped."""
    text = json.dumps(value, ensure_ascii=False, default=_unquoted)
    return escaped(UNQUOTED.sub(r"\1", text) if MARK in text else text)


def _unquoted(number: object) -> str:
    """A number that json cannot write; see `SentNumber`."""
    return f"{MARK}{number!s}"


def _value(value: object) -> object:
    """A field's value as a cell takes it; an empty ``extra`` is none."""
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, dict):
        return as_json(value) if value else None
    if isinstance(value, tuple):
        return [_attribute(each) for each in value]
    return value


def time_text(moment: datetime) -> str:
    """``2026-03-01T14:05:00.000000Z``; always with microseconds, so that texts sort as times."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def readable_heading(column: str) -> str:
    """What a table calls a column."""
    if column in TIMES:
        return f"{column} (UTC)"
    # Its values are shorter than its name, and the body needs the room.
    return "sender" if column == "sender_type" else column


def readable_time(text: str) -> str:
    """``2026-03-01 14:05`` for a time of `user_row` or `message_row`, which is in UTC."""
    return f"{text[:10]} {text[11:16]}"


def _attribute(attribute: UserAttribute) -> dict[str, object]:
    more = {"extra": attribute.extra} if attribute.extra else {}
    return {"name": attribute.name, "value": attribute.value, **more}
