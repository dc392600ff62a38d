"""The JSON objects of the service as sent, for ``as_dict=True``.

Keys are in the order of the response. Only ``id`` is guaranteed: other fields may be missing or
null, and there may be more than these. Timestamps are the strings that the service sent.
"""

from typing import Required, TypedDict

__all__ = [
    "MessageDict",
    "OperatorSenderDict",
    "PageDict",
    "UserAttributeDict",
    "UserDict",
    "UserSenderDict",
]


class UserAttributeDict(TypedDict, total=False):
    """One custom property of a user."""

    name: str | None
    value: str | None


class UserDict(TypedDict, total=False):
    """A user."""

    id: Required[int]
    name: str | None
    email: str | None
    reference: str | None
    created_at: str | None
    updated_at: str | None
    online_at: str | None
    last_url: str | None
    user_attributes: list[UserAttributeDict] | None


class UserSenderDict(TypedDict, total=False):
    """The sender if ``sender_type`` is ``user``."""

    id: Required[int]
    name: str | None
    email: str | None


class OperatorSenderDict(TypedDict, total=False):
    """The sender if ``sender_type`` is ``operator``."""

    id: Required[int]
    forename: str | None
    surname: str | None
    email: str | None
    picture_thumb_url: str | None


class MessageDict(TypedDict, total=False):
    """A message; it does not name the user whose list it is in."""

    id: Required[int]
    body: str | None
    read_by_user: bool | None
    read_by_operator: bool | None
    created_at: str | None
    file_url: str | None
    auto_invitation: bool | None
    sender_type: str | None
    sender: UserSenderDict | OperatorSenderDict | None


class PageDict(TypedDict, total=False):
    """A list response: has ``users`` or ``messages``, depending on the list."""

    limit: int | None
    offset: int | None
    total: int | None
    users: list[UserDict]
    messages: list[MessageDict]
