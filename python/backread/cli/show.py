"""``show``: a conversation of the mirror in the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread._client.arguments import LARGEST
from backread.cli.arguments import Folder
from backread.cli.color import ink_for
from backread.cli.exits import UnusableArgumentError
from backread.cli.pager import write_paged
from backread.cli.rows import as_json, time_text
from backread.cli.transcript import Part, transcript
from backread.cli.waiting import waiting

if TYPE_CHECKING:
    from backread.mirror.published.snapshot_reader import SnapshotReader
    from backread.models import Message

__all__ = ["show"]


AROUND = 21
"""The number of messages shown of those around one."""

FIRST = 500
"""The number of messages that are read first, so that a long conversation shows at once."""

MORE = 5_000
"""The number of messages read then, whenever the reader has come so far."""


class Shape(StrEnum):
    """The values of ``--format``."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


def show(
    folder: Folder,
    user_id: Annotated[
        int, typer.Argument(min=0, metavar="USER_ID", show_default=False, help="The user's id.")
    ],
    last: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=LARGEST,
            metavar="NUMBER",
            show_default="all",
            help="Only the last messages, at most this many.",
        ),
    ] = None,
    message: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="MESSAGE_ID",
            show_default=False,
            help="Only this message, the ten before it and the ten after it.",
        ),
    ] = None,
    shape: Annotated[
        Shape,
        typer.Option("--format", help="A text for people, or a line of JSON for each message."),
    ] = Shape.TEXT,
    pager: Annotated[
        bool,
        typer.Option("--pager/--no-pager", help="Show what does not fit on the terminal in PAGER."),
    ] = True,
) -> None:
    """Shows a conversation of the mirror in FOLDER, the oldest message first.

    With days, times (UTC), senders, files, and what was not read yet. It reads the mirror only and
    sends no request.
    """
    from backread.mirror.published.snapshot_reader import SnapshotReader

    if last is not None and message is not None:
        raise UnusableArgumentError("give either --last or --message")
    with waiting("reading the conversation"):
        reader = SnapshotReader(folder.absolute())
        found = _part(reader, user_id, last, message)
    if shape is Shape.TEXT:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        lines = transcript(found, width, ink_for(sys.stdout), message)
        write_paged(lines, allowed=pager)
        return
    for each in found.messages:
        sys.stdout.write(f"{as_json(_document(each))}\n")


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
