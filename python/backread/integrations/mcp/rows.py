"""What is found in the mirror as rows of an answer; missing values are left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from math import isfinite
from typing import Any

from backread.integrations.mcp.answers import Row, Texts
from backread.mirror import SearchHit
from backread.mirror.figures import Figures
from backread.mirror.published.people import Person
from backread.models import Message, User

__all__ = [
    "figure_rows",
    "figures_left_out",
    "hit_row",
    "message_row",
    "person_row",
    "sql_row",
    "time_of",
    "user_left_out",
    "user_row",
]

LONGEST_NAME = 100
LONGEST_ADDRESS = 300
LONGEST_SNIPPET = 400
LONGEST_CELL = 500
MOST_ATTRIBUTES = 30
MOST_OPERATORS = 20
MOST_PERIODS = 60


def person_row(person: Person, texts: Texts) -> Row:
    """A user with the figures of the conversation."""
    return _filled(
        user_id=person.user_id,
        name=texts.short(person.name, LONGEST_NAME),
        email=texts.short(person.email, LONGEST_NAME) if texts.emails else None,
        reference=texts.short(person.reference, LONGEST_NAME),
        messages=person.messages,
        by_user=person.user_messages,
        by_operators=person.operator_messages,
        unread_by_operator=person.unread_by_operator or None,
        unread_by_user=person.unread_by_user or None,
        files=person.files or None,
        first_message_at=time_of(person.first_message_at),
        last_message_at=time_of(person.last_message_at),
        last_message_from=texts.short(person.last_sender_type, LONGEST_NAME),
        last_message=texts.short(person.last_body, LONGEST_SNIPPET),
    )


def user_row(user: User, texts: Texts) -> Row:
    """A user's own fields."""
    attributes = list(user.attributes.items())[:MOST_ATTRIBUTES]
    return {
        "user": _filled(
            id=user.id,
            name=texts.short(user.name, LONGEST_NAME),
            email=texts.short(user.email, LONGEST_NAME) if texts.emails else None,
            reference=texts.short(user.reference, LONGEST_NAME),
            created_at=time_of(user.created_at),
            online_at=time_of(user.online_at),
            last_url=texts.short(user.last_url, LONGEST_ADDRESS),
            attributes={
                texts.short(name, LONGEST_NAME): texts.short(value, LONGEST_NAME)
                for name, value in attributes
            }
            or None,
        )
    }


def user_left_out(user: User) -> list[str]:
    """What `user_row` leaves out, in a sentence."""
    count = len(user.attributes)
    if count <= MOST_ATTRIBUTES:
        return []
    return [f"The first {MOST_ATTRIBUTES} of the user's {count:,} attributes."]


def message_row(message: Message, longest_body: int, texts: Texts) -> Row:
    """A message with its sender's name."""
    return _filled(
        id=message.id,
        at=time_of(message.created_at),
        sender=texts.short(message.sender_type, LONGEST_NAME),
        name=texts.short(message.sender_name, LONGEST_NAME),
        body=texts.short(message.body, longest_body),
        file=texts.short(message.file_url, LONGEST_ADDRESS),
        auto_invitation=message.auto_invitation or None,
        unread_by_user=message.read_by_user is False or None,
        unread_by_operator=message.read_by_operator is False or None,
    )


def hit_row(hit: SearchHit, texts: Texts) -> Row:
    """A message that was found, with the part of its body around the words."""
    return _filled(
        user_id=hit.user_id,
        message_id=hit.id,
        at=time_of(hit.created_at),
        sender=texts.short(hit.sender_type, LONGEST_NAME),
        name=texts.short(hit.sender_name, LONGEST_NAME),
        part_of_body=texts.short(hit.snippet, LONGEST_SNIPPET),
    )


def figure_rows(figures: Figures, texts: Texts) -> list[Row]:
    """The figures, a row for each topic, and those by period and by operator a row each."""
    document = texts.each_short(figures, LONGEST_NAME)
    rows: list[Row] = [
        {name: document[name]}
        for name in ("totals", "responses", "states", "invitations", "attachments")
    ]
    rows += [{"operator": each} for each in document["operators"][:MOST_OPERATORS]]
    rows += [{document["unit"]: each} for each in document["volume"][-MOST_PERIODS:]]
    return rows


def figures_left_out(figures: Figures) -> list[str]:
    """What `figure_rows` leaves out, in sentences."""
    found = []
    if (periods := len(figures["volume"])) > MOST_PERIODS:
        found.append(
            f"The last {MOST_PERIODS} of {periods:,} {figures['unit']}s; since and until show "
            "others."
        )
    if figures["operators_total"] > MOST_OPERATORS:
        found.append(
            f"{MOST_OPERATORS} of {figures['operators_total']:,} operators: those with the most "
            "messages."
        )
    return found


def sql_row(values: Sequence[Any], texts: Texts) -> Row:
    """A row of a query's result; other values than numbers and booleans as text."""
    return [_cell(each, texts) for each in values]


def time_of(moment: datetime | None) -> str | None:
    """``2024-03-05T09:31:07Z``, with microseconds unless they are zero: a query finds it again."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def _cell(value: Any, texts: Texts) -> Any:
    if isinstance(value, float) and not isfinite(value):
        # JSON has no such number.
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, datetime) and value.tzinfo is not None:
        return time_of(value)
    if isinstance(value, (dict, list)):
        return texts.short(json.dumps(value, ensure_ascii=False, default=str), LONGEST_CELL)
    return texts.short(str(value), LONGEST_CELL)


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
