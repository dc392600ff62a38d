"""A conversation as Rich draws it, on a terminal or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backread._display.words import amount, is_invisible, line, plain, sender_name

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from backread.mirror.published.conversation import Deleted
    from backread.models import Message, User


INDENT = 7
"""Below the name, after the time."""

LONGEST_NAME = 80


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


def transcript(conversation: Part, marked: int | None = None) -> Iterator[RenderableType]:
    """A conversation, read while it is drawn.

    Args:
        conversation: The user and the messages.
        marked: The id of a message to point at.
    """
    from rich.text import Text

    yield Text(_title(conversation.user), style="bold")
    yield Text(f"{amount(conversation.total, 'message')}; times are UTC")
    for sentence in conversation.deleted.in_words():
        yield Text(sentence)
    if conversation.first:
        earlier = amount(conversation.first, "earlier message")
        yield Text(f"{earlier} not shown", style="dim")
    day = None
    shown = conversation.first
    for message in conversation.messages:
        shown += 1
        time = None if message.created_at is None else message.created_at.astimezone(UTC)
        if time is not None and time.date() != day:
            day = time.date()
            yield Text(f"\n{day:%A}, {day}", style="bold")
        yield from _message(message, time, message.id == marked)
    if shown < conversation.total:
        later = amount(conversation.total - shown, "later message")
        yield Text(f"\n{later} not shown", style="dim")


def _title(user: User) -> str:
    facts = (line(user.name or ""), f"user {user.id}", line(user.email or ""))
    return ", ".join(filter(None, facts))


def _message(message: Message, time: datetime | None, marked: bool) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    head = Text("--:-- " if time is None else f"{time:%H:%M} ").append(_speaker(message))
    if unread := _unread(message):
        head.append(f" ({unread})", style="dim")
    yield head.append(f" <- message {message.id}") if marked else head
    body = "\n".join(each.rstrip() for each in plain(message.body or "").split("\n"))
    if not is_invisible(body):
        yield Padding(Text(body), (0, 0, 0, INDENT), expand=False)
    elif body:
        unseen = f"{amount(len(body), 'character')}, none to be seen"
        yield Padding(Text(unseen, style="dim"), (0, 0, 0, INDENT), expand=False)
    elif not message.file_url:
        yield Padding(Text("no text", style="dim"), (0, 0, 0, INDENT), expand=False)
    if message.file_url:
        yield Text(f"{'':{INDENT}}file: {line(message.file_url)}")


def _speaker(message: Message) -> Text:
    from rich.text import Text

    kind = message.sender_type or ""
    name = line(sender_name(message.sender) or "")
    if is_invisible(name):
        name = line(kind) or "unknown"
    name = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    is_user = kind == "user" and not message.auto_invitation
    said = Text(name, style="bold" if is_user else "cyan")
    role = "automatic invitation" if message.auto_invitation else line(kind)
    return said if is_user or not role or role == name else Text.assemble(said, f", {role}")


def _unread(message: Message) -> str:
    """The words of the bubbles in a notebook."""
    if message.sender_type == "user" and message.read_by_operator is False:
        return "not read by an operator"
    from_us = message.sender_type == "operator" or message.auto_invitation
    return "not read by the user" if from_us and message.read_by_user is False else ""
