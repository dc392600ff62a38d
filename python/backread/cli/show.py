"""``show``: a conversation of the mirror in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from backread._client.arguments import LARGEST
from backread._display.words import amount, is_invisible, line, plain, sender_name
from backread.cli.arguments import Folder, PagerOption, UserId, value
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Format, Target, destination, text_stream, with_target, write_rows
from backread.cli.rows import time_text
from backread.cli.stderr import waiting
from backread.cli.table_output import open_pager
from backread.cli.text import console_for

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from backread.mirror.published.conversation import Window
    from backread.models import Message, User

AROUND = 21
"""The number of messages shown of those around one."""

INDENT = 7
"""Below the name, after the time."""

LONGEST_NAME = 80


@with_target
def show(
    target: Target,
    folder: Folder,
    user_id: UserId,
    last: Annotated[
        int | None,
        value("NUMBER", "The last messages only.", min=1, show_default="all"),
    ] = None,
    message: Annotated[
        int | None,
        value("MESSAGE_ID", "Only this message, the ten before it and the ten after it.", min=0),
    ] = None,
    pager: PagerOption = True,
) -> None:
    """Shows a conversation of the mirror in FOLDER, the oldest message first.

    With days, times (UTC), senders, files, and what was not read yet. It reads the mirror only and
    sends no request.

    Examples:
        backread show chats 42
        backread show chats 42 --last 10
        backread show chats 42 --message 9             # one that search found
    """
    from rich.text import Text

    from backread.mirror.published.conversation import read_window
    from backread.mirror.published.snapshot_reader import SnapshotReader

    if last is not None and message is not None:
        raise UnusableArgumentError("give either --last or --message")
    with waiting("reading the conversation"):
        limit = last or LARGEST if message is None else AROUND
        reader = SnapshotReader(folder.absolute())
        found = read_window(reader, user_id, around=message, limit=limit)
    if target.format is not Format.TABLE:
        write_rows(map(_document, found.conversation), target, ())
        return
    with destination(target.output) as stream, text_stream(stream) as text:
        console, drawing = console_for(text), console_for(text)
        with open_pager(console, pager):
            for each in transcript(found, message):
                with drawing.capture() as drawn:
                    # Only bodies are wrapped, so that links and names can be copied.
                    drawing.print(each, soft_wrap=isinstance(each, Text) or not text.isatty())
                lines = (line.rstrip() for line in drawn.get().split("\n"))
                console.out("\n".join(lines).removesuffix("\n"), highlight=False)


def _document(message: Message) -> dict[str, Any]:
    moment = message.created_at
    time = None if moment is None else time_text(moment)
    return {"user_id": message.user_id} | asdict(message) | {"created_at": time}


def transcript(window: Window, marked: int | None = None) -> Iterator[RenderableType]:
    """A part of a conversation; ``marked`` is the id of a message to point at."""
    from rich.text import Text

    yield Text(_title(window.conversation.user), style="bold")
    yield Text(f"{amount(window.total, 'message')}; times are UTC")
    for sentence in window.deleted.in_words():
        yield Text(sentence)
    if window.start:
        earlier = amount(window.start, "earlier message")
        yield Text(f"{earlier} not shown", style="dim")
    day = None
    for message in window.conversation:
        time = None if message.created_at is None else message.created_at.astimezone(UTC)
        if time is not None and time.date() != day:
            day = time.date()
            yield Text(f"\n{day:%A}, {day}", style="bold")
        yield from _message(message, time, message.id == marked)
    if window.end < window.total:
        later = amount(window.total - window.end, "later message")
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
