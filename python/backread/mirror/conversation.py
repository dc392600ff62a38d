"""One user's messages from the published snapshot, as models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, overload

from backread._display.records import sender_name
from backread._display.words import amount, line, plain
from backread.errors import MirrorError
from backread.mirror.engine import from_microseconds
from backread.mirror.snapshot import SnapshotReader
from backread.models import (
    Message,
    OperatorSender,
    OtherSender,
    Sender,
    User,
    UserAttribute,
    UserSender,
)

__all__ = ["Conversation", "read_conversation"]

USER_QUERY = """
SELECT id, name, email, reference, epoch_us(created_at), epoch_us(updated_at),
    epoch_us(online_at), last_url, user_attributes, extra
FROM users WHERE id = ?
"""

MESSAGES_QUERY = """
SELECT id, body, read_by_user, read_by_operator, epoch_us(created_at), file_url, auto_invitation,
    sender_type, extra, sender_id, sender_name, sender_email, sender_forename, sender_surname,
    sender_picture_thumb_url, sender_extra
FROM messages WHERE user_id = ? AND deleted_at IS NULL
ORDER BY created_at NULLS LAST, id
"""


LONGEST_PRETTY = 40
"""The number of messages shown by IPython in a terminal: the last ones."""


LONGEST_LINE = 2_000
"""The number of characters it shows of each."""


class _Printer(Protocol):
    """The part of IPython's pretty printer that is used here."""

    def text(self, text: str) -> object: ...


@dataclass(frozen=True, slots=True, repr=False)
class Conversation:
    """One user and the user's messages in chronological order, without deleted ones.

    A sequence of its messages; a slice is again a conversation. ``str()`` has one line per message,
    times in UTC. In a notebook it renders as a chat: the last 200 messages, or those of a slice.

    Text from strangers cannot affect a terminal or page: control characters are shown as pictures
    (``␛``), characters that change the text direction are removed from ``str()`` and isolated
    within their bubble, and a file's address is a link only if it is plain http or https.
    """

    user: User
    messages: tuple[Message, ...]

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, position: int) -> Message: ...
    @overload
    def __getitem__(self, position: slice) -> Conversation: ...
    def __getitem__(self, position: int | slice) -> Message | Conversation:
        if isinstance(position, slice):
            return Conversation(self.user, self.messages[position])
        return self.messages[position]

    def __str__(self) -> str:
        return "\n".join([self._title(), *map(_line, self.messages)])

    def __repr__(self) -> str:
        return f"<Conversation of user {self.user.id}, {amount(len(self), 'message')}>"

    def _title(self) -> str:
        name = line(self.user.name or "") or "no name"
        return f"{name} (user {self.user.id}), {amount(len(self), 'message')}"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        lines = [self._title()]
        if (cut := len(self) - LONGEST_PRETTY) > 0:
            lines.append(f"... {amount(cut, 'earlier message')}; print(conversation) writes all")
        for message in self.messages[-LONGEST_PRETTY:]:
            said = _line(message)
            lines.append(said if len(said) <= LONGEST_LINE else f"{said[:LONGEST_LINE]} ...")
        printer.text("\n".join(lines))

    def _repr_html_(self) -> str:
        from backread._display.bubbles import conversation_html

        return conversation_html(self)


def read_conversation(reader: SnapshotReader, user_id: int) -> Conversation:
    """The conversation of one user; `MirrorError` if the snapshot has no such user."""
    cursor = reader.cursor()
    users = reader.rows(cursor, USER_QUERY, [user_id])
    if not users:
        raise MirrorError(
            f"the published snapshot has no user {user_id}; sync again if the user is new"
        )
    messages = reader.rows(cursor, MESSAGES_QUERY, [user_id])
    return Conversation(_user(*users[0]), tuple(_message(user_id, *row) for row in messages))


def _line(message: Message) -> str:
    moment = "????-??-?? ??:??"
    if message.created_at is not None:
        moment = f"{message.created_at:%Y-%m-%d %H:%M}"
    name = line(sender_name(message.sender) or message.sender_type or "unknown")
    body = plain(message.body or "").replace("\n", "\n" + " " * 18)
    file = f" [{line(message.file_url)}]" if message.file_url else ""
    return f"{moment}  {name}: {body}{file}"


def _user(
    user_id: int,
    name: str | None,
    email: str | None,
    reference: str | None,
    created_at: int | None,
    updated_at: int | None,
    online_at: int | None,
    last_url: str | None,
    attributes: list[dict[str, Any]] | None,
    extra: str | None,
) -> User:
    listed = None
    if attributes is not None:
        listed = tuple(
            UserAttribute(each["name"], each["value"], _fields(each["extra"]))
            for each in attributes
        )
    return User(
        id=user_id,
        name=name,
        email=email,
        reference=reference,
        created_at=from_microseconds(created_at),
        updated_at=from_microseconds(updated_at),
        online_at=from_microseconds(online_at),
        last_url=last_url,
        user_attributes=listed,
        extra=_fields(extra),
    )


def _message(
    user_id: int,
    message_id: int,
    body: str | None,
    read_by_user: bool | None,
    read_by_operator: bool | None,
    created_at: int | None,
    file_url: str | None,
    auto_invitation: bool | None,
    sender_type: str | None,
    extra: str | None,
    *sender: Any,
) -> Message:
    return Message(
        id=message_id,
        body=body,
        read_by_user=read_by_user,
        read_by_operator=read_by_operator,
        created_at=from_microseconds(created_at),
        file_url=file_url,
        auto_invitation=auto_invitation,
        sender_type=sender_type,
        sender=_sender(sender_type, *sender),
        user_id=user_id,
        extra=_fields(extra),
    )


def _sender(
    sender_type: str | None,
    sender_id: int | None,
    name: str | None,
    email: str | None,
    forename: str | None,
    surname: str | None,
    picture: str | None,
    extra: str | None,
) -> Sender | None:
    if sender_type == "user" and sender_id is not None:
        return UserSender(sender_id, name, email, _fields(extra))
    if sender_type == "operator" and sender_id is not None:
        return OperatorSender(sender_id, forename, surname, email, picture, _fields(extra))
    named = {
        "name": name,
        "email": email,
        "forename": forename,
        "surname": surname,
        "picture_thumb_url": picture,
    }
    fields = {key: value for key, value in named.items() if value is not None} | _fields(extra)
    if sender_id is None and not fields:
        return None
    return OtherSender(sender_type, sender_id, fields)


def _fields(text: str | None) -> dict[str, Any]:
    return json.loads(text) if text else {}
