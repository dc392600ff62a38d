"""``show``: a conversation of the mirror in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from backread.cli.arguments import Folder, PagerOption, UserId, value
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Format, Target, destination, text_stream, with_target, write_rows
from backread.cli.rows import time_text
from backread.cli.stderr import waiting
from backread.cli.table_output import open_pager
from backread.cli.text import console_for
from backread.cli.transcript import Part, transcript

if TYPE_CHECKING:
    from backread.mirror.published.snapshot_reader import SnapshotReader
    from backread.models import Message


AROUND = 21
"""The number of messages shown of those around one."""

FIRST = 500
"""The number of messages that are read first, so that a long conversation shows at once."""

MORE = 5_000
"""The number of messages read then, whenever the reader has come so far."""


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

    from backread.mirror.published.snapshot_reader import SnapshotReader

    if last is not None and message is not None:
        raise UnusableArgumentError("give either --last or --message")
    with waiting("reading the conversation"):
        reader = SnapshotReader(folder.absolute())
        found = _part(reader, user_id, last, message)
    if target.format is not Format.TABLE:
        write_rows(map(_document, found.messages), target, ())
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


def _part(reader: SnapshotReader, user_id: int, last: int | None, message: int | None) -> Part:
    from backread.mirror.published.conversation import (
        count_messages,
        read_messages,
        read_user,
        read_window,
    )

    if last is not None or message is not None:
        limit = AROUND if last is None else last
        window = read_window(reader, user_id, around=message, limit=limit)
        messages = window.conversation
        return Part(messages.user, window.total, window.start, iter(messages), window.deleted)
    snapshot = reader.snapshot()
    user = read_user(snapshot, user_id)
    total, deleted = count_messages(snapshot, user_id)

    def read() -> Iterator[Message]:
        first, count = 0, FIRST
        while first < total:
            yield from read_messages(snapshot, user_id, first=first, count=count)
            first, count = first + count, MORE

    return Part(user, total, 0, read(), deleted)


def _document(message: Message) -> dict[str, Any]:
    moment = message.created_at
    time = None if moment is None else time_text(moment)
    return {"user_id": message.user_id} | asdict(message) | {"created_at": time}
