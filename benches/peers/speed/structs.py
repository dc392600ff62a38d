"""The rows as msgspec structs, with the types that backread's dataclasses have.

With ``untracked`` as an argument they are out of the sight of Python's garbage collector,
which msgspec's page on performance has for objects that are in no cycle.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

TRACKED = "untracked" not in sys.argv


class Attribute(msgspec.Struct, gc=TRACKED):
    """A custom property of a user."""

    name: str | None
    value: str | None


class User(msgspec.Struct, gc=TRACKED):
    """A user."""

    id: int
    name: str | None = None
    email: str | None = None
    reference: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    online_at: datetime | None = None
    last_url: str | None = None
    user_attributes: list[Attribute] | None = None


class Sender(msgspec.Struct, gc=TRACKED):
    """A sender of either kind: the type stands outside of it, where a tag cannot."""

    id: int
    name: str | None = None
    email: str | None = None
    forename: str | None = None
    surname: str | None = None
    picture_thumb_url: str | None = None


class Message(msgspec.Struct, gc=TRACKED):
    """A message."""

    id: int
    body: str | None = None
    read_by_user: bool | None = None
    read_by_operator: bool | None = None
    created_at: datetime | None = None
    file_url: str | None = None
    auto_invitation: bool | None = None
    sender_type: str | None = None
    sender: Sender | None = None


class UsersPage(msgspec.Struct, gc=TRACKED):
    """A page of users."""

    total: int
    users: list[User]


class MessagesPage(msgspec.Struct, gc=TRACKED):
    """A page of messages."""

    total: int
    messages: list[Message]


_users = msgspec.json.Decoder(UsersPage)
_messages = msgspec.json.Decoder(MessagesPage)


def users(body: Any) -> tuple[int, Sequence[User]]:
    """A page of users from its bytes."""
    page = _users.decode(body)
    return page.total, page.users


def messages(body: Any) -> tuple[int, Sequence[Message]]:
    """A page of messages from its bytes."""
    page = _messages.decode(body)
    return page.total, page.messages


def id_of(user: User) -> int:
    """A user's id."""
    return user.id
