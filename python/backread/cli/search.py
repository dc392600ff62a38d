"""``search``: messages of the mirror that contain words."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread.cli.paths import folder_to_write
from backread.cli.rows import as_json
from backread.cli.stderr import say

if TYPE_CHECKING:
    from backread.mirror import SearchHit

__all__ = ["search"]


class Shape(StrEnum):
    """The values of ``--format``."""

    LINES = "lines"
    JSON = "json"


def search(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            parser=folder_to_write,
            show_default=False,
            help="The mirror's folder.",
        ),
    ],
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

    Case and accents do not count, and no character has a special meaning.
    """
    from backread.mirror import Mirror

    hits = Mirror(folder).search(" ".join(words), since=since, until=until, user=user, limit=limit)
    for hit in hits:
        text = str(hit) if shape is Shape.LINES else as_json(_document(hit))
        sys.stdout.write(f"{text}\n")
    if not hits:
        say("no message has all of these words", named=False)
    elif len(hits) == limit:
        say(f"these are the newest {limit:,}; --limit shows more", named=False)


def _document(hit: SearchHit) -> dict[str, Any]:
    moment = hit.created_at
    text = None if moment is None else moment.isoformat().replace("+00:00", "Z")
    return asdict(hit) | {"created_at": text}
