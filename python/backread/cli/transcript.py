"""A conversation as lines for a terminal or a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backread._display.words import amount, is_invisible, line, plain, sender_name
from backread.cli.color import Ink

if TYPE_CHECKING:
    from backread.mirror.published.conversation import Deleted
    from backread.models import Message, User

__all__ = ["Part", "transcript"]

WIDEST = 100
"""Longer lines are hard to read."""

INDENT = " " * 7
"""Below the name, after the time."""

LONGEST_NAME = 80

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive messages of a conversation, read while they are used.

    ``total`` counts all messages, ``first`` is the position of the first one of these, from 0.
    """

    user: User
    total: int
    first: int
    messages: Iterator[Message]
    deleted: Deleted


def transcript(
    conversation: Part, width: int | None, ink: Ink, marked: int | None = None
) -> Iterator[str]:
    """The lines of a conversation, read while they are used.

    Args:
        conversation: The user and the messages.
        width: The cells of a line; None does not wrap.
        ink: The colours.
        marked: The id of a message to point at.
    """
    for each in _wrapped(_title(conversation.user), "", width):
        yield ink.bold(each)
    count = amount(conversation.total, "message")
    yield from _wrapped(f"{count}; times are UTC", "", width)
    for sentence in conversation.deleted.in_words():
        yield from _wrapped(sentence, "", width)
    if conversation.first:
        earlier = amount(conversation.first, "earlier message")
        yield ink.dim(f"{earlier} not shown")
    day = None
    shown = conversation.first
    for message in conversation.messages:
        shown += 1
        time = None if message.created_at is None else message.created_at.astimezone(UTC)
        if time is not None and time.date() != day:
            day = time.date()
            yield ""
            yield ink.bold(f"{WEEKDAYS[day.weekday()]}, {day}")
        yield from _message(message, time, width, ink, message.id == marked)
    if shown < conversation.total:
        yield ""
        yield ink.dim(f"{amount(conversation.total - shown, 'later message')} not shown")


def _title(user: User) -> str:
    facts = (line(user.name or ""), f"user {user.id}", line(user.email or ""))
    return ", ".join(filter(None, facts))


def _message(
    message: Message, time: datetime | None, width: int | None, ink: Ink, marked: bool
) -> Iterator[str]:
    head = [f"{time:%H:%M}" if time is not None else "--:--", " ", _speaker(message, ink)]
    if unread := _unread(message):
        head.append(ink.dim(f" ({unread})"))
    if marked:
        head.append(f" <- message {message.id}")
    yield "".join(head)
    body = plain(message.body or "")
    if not is_invisible(body):
        for each in body.split("\n"):
            yield from _wrapped(each, INDENT, width)
    elif body:
        yield INDENT + ink.dim(f"{amount(len(body), 'character')}, none to be seen")
    elif not message.file_url:
        yield INDENT + ink.dim("no text")
    if message.file_url:
        # On one line, so that a terminal takes it for one link.
        yield f"{INDENT}file: {line(message.file_url)}"


def _speaker(message: Message, ink: Ink) -> str:
    kind = message.sender_type or ""
    name = line(sender_name(message.sender) or "")
    if is_invisible(name):
        name = line(kind) or "unknown"
    name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    if message.auto_invitation:
        return f"{ink.name(name)}, automatic invitation"
    if kind == "user":
        return ink.bold(name)
    role = line(kind)
    return f"{ink.name(name)}, {role}" if role and role != name else ink.name(name)


def _unread(message: Message) -> str:
    """The words of the bubbles in a notebook."""
    if message.sender_type == "user" and message.read_by_operator is False:
        return "not read by an operator"
    from_us = message.sender_type == "operator" or message.auto_invitation
    return "not read by the user" if from_us and message.read_by_user is False else ""


def _wrapped(text: str, indent: str, width: int | None) -> Iterator[str]:
    if width is None or len(text) * 2 <= width - len(indent):
        # No character is wider than two cells.
        yield (indent + text).rstrip()
        return
    from rich.console import Console
    from rich.text import Text

    room = max(min(width, WIDEST) - len(indent), 1)
    for each in Text(text).wrap(Console(width=room), room):
        yield (indent + each.plain).rstrip()
