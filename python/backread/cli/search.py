"""``search``: messages of the mirror that contain words."""

from __future__ import annotations

import re
import sys
from dataclasses import asdict
from enum import StrEnum
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread._display.words import line, plain
from backread.cli.arguments import Folder
from backread.cli.color import Ink, ink_for
from backread.cli.exits import UnusableArgumentError
from backread.cli.rows import as_json, time_text
from backread.cli.stderr import say
from backread.cli.usage import in_options
from backread.cli.waiting import waiting
from backread.errors import MirrorError

if TYPE_CHECKING:
    from backread.mirror import Mirror, SearchHit

__all__ = ["search"]

BLANKS = re.compile(r"\s+")
INDENT = 2


class Shape(StrEnum):
    """The values of ``--format``."""

    LINES = "lines"
    JSON = "json"
    JSONL = "jsonl"


def search(
    folder: Folder,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS",
            show_default=False,
            help="All of them must occur; '\"a phrase\"' in double quotes is one word.",
        ),
    ],
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only messages from this date or time (UTC) on."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only messages before this time.")
    ] = None,
    user: Annotated[
        int | None,
        typer.Option(min=0, metavar="USER_ID", help="Only messages of this user's conversation."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="How many messages to show, at most.")
    ] = 50,
    shape: Annotated[
        Shape, typer.Option("--format", help="A line per message, or JSON lines.")
    ] = Shape.LINES,
) -> None:
    """Finds messages in the mirror in FOLDER, newest first.

    Case and accents do not count, and all characters but double quotes stand for themselves.
    Times are UTC. `backread show FOLDER USER_ID --message MESSAGE_ID` shows what was said before
    and after.
    """
    from backread.mirror import Mirror

    mirror = Mirror(folder)
    text = " ".join(words)
    try:
        with waiting("searching"):
            hits = mirror.search(text, since=since, until=until, user=user, limit=limit)
    except ValueError as error:
        raise UnusableArgumentError(in_options(str(error))) from None
    if not hits and user is not None:
        _refuse_unknown(mirror, user)
    ink = ink_for(sys.stdout)
    for hit in hits:
        if shape is not Shape.LINES:
            sys.stdout.write(f"{as_json(_document(hit))}\n")
        elif sys.stdout.isatty():
            sys.stdout.write(_block(hit, ink))
        else:
            sys.stdout.write(f"{_head(hit, ink)}: {_snippet(hit, ink)}\n")
    if not hits:
        say("no message has all of these words", named=False)
    elif len(hits) == limit:
        say(f"these are the newest {limit:,}; --limit shows more", named=False)


def _refuse_unknown(mirror: Mirror, user: int) -> None:
    if not mirror.sql("SELECT 1 FROM users WHERE id = ?", [user]).fetchall():
        raise MirrorError(
            f"the mirror in {mirror.folder} has no user {user}; check --user, or sync again if the "
            "user is new"
        )


def _head(hit: SearchHit, ink: Ink) -> str:
    """Everything but the text: the line of a hit ends with its snippet."""
    whole = str(hit)
    head = whole[: len(whole) - len(line(hit.snippet))].rstrip().removesuffix(":")
    moment, _, rest = head.partition("  ")
    place, _, name = rest.partition("  ")
    return f"{moment}  {place}  {ink.bold(name)}"


def _snippet(hit: SearchHit, ink: Ink) -> str:
    """The text on one line, with the words marked."""
    parts, end = [], 0
    for low, high in hit.matches:
        parts += [_spaced(hit.snippet[end:low]), ink.mark(_spaced(hit.snippet[low:high]))]
        end = high
    return "".join([*parts, _spaced(hit.snippet[end:])]).strip()


def _spaced(text: str) -> str:
    return BLANKS.sub(" ", plain(text))


def _block(hit: SearchHit, ink: Ink) -> str:
    """The hit for a terminal: its text is wrapped below the line that says where it is."""
    from rich.console import Console
    from rich.text import Text

    room = max(get_terminal_size().columns - INDENT, 1)
    console = Console(
        width=room, force_terminal=ink.on, color_system="standard" if ink.on else None
    )
    text = Text.from_ansi(_snippet(hit, ink))
    with console.capture() as drawn:
        console.print(text, highlight=False)
    below = "".join(f"{' ' * INDENT}{each}\n" for each in drawn.get().splitlines())
    return f"{_head(hit, ink)}\n{below}"


def _document(hit: SearchHit) -> dict[str, Any]:
    moment = hit.created_at
    text = None if moment is None else time_text(moment)
    return asdict(hit) | {"created_at": text}
