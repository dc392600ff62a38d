"""The columns of users and messages in tables, derived from the dataclasses of `backread.models`.

They are those of a listing's Arrow stream, in the same order. A message's sender becomes the
columns ``sender_…``: the fields of both documented types of sender.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from types import NoneType
from typing import Any, Literal, TypeAlias, get_args, get_origin

from backread.models import Message, OperatorSender, User, UserAttribute, UserSender

SENDER = "sender_"
"""The prefix of the columns with a sender's fields."""

Resource: TypeAlias = Literal["users", "messages"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``nullable`` is false for the key of its table.

    ``kind`` names the type of its values: int, bool, str, datetime, dict for JSON text, or tuple
    for a list of `ATTRIBUTE`. It is a name because freezegun replaces the class datetime.
    """

    name: str
    kind: str
    nullable: bool


def cell_of(record: User | Message, column: str) -> Any:
    """The value of a column in one user or message, as its dataclass has it."""
    # A message also has the property sender_name, which is not the column of that name.
    if isinstance(record, User) or column in Message.__dataclass_fields__:
        return getattr(record, column)
    # Senders of one type lack the fields of the other.
    return getattr(record.sender, column.removeprefix(SENDER), None)


def _columns(record: type, prefix: str = "") -> tuple[Column, ...]:
    columns: list[Column] = []
    for field in fields(record):
        if field.name == "sender":
            found = {each.name: each for one in SENDERS for each in _columns(one, SENDER)}
            columns += _ordered(found.values(), SENDER)
        else:
            options = get_args(field.type)
            kind: Any = options[0] if NoneType in options else field.type
            is_key = field.type is int and not prefix
            kind = get_origin(kind) or kind
            name = "datetime" if issubclass(kind, datetime) else kind.__name__
            columns.append(Column(prefix + field.name, name, not is_key))
    return tuple(_ordered(columns, prefix))


def _ordered(columns: Iterable[Column], prefix: str) -> list[Column]:
    """In the order of the fields, except the user's id first and undocumented fields last."""
    return sorted(columns, key=lambda each: (each.name == f"{prefix}extra", each.name != "user_id"))


SENDERS = (UserSender, OperatorSender)
ATTRIBUTE = _columns(UserAttribute)
USERS = _columns(User)
MESSAGES = _columns(Message)

COLUMNS: Mapping[Resource, tuple[Column, ...]] = {"users": USERS, "messages": MESSAGES}
KEYS: Mapping[Resource, tuple[str, ...]] = {
    name: tuple(each.name for each in columns if not each.nullable)
    for name, columns in COLUMNS.items()
}
"""The columns that identify a row: ids of messages may not be unique across users."""
