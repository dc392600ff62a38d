"""HTML out of values: the only place where text becomes markup, and all of it is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import urlsplit

from backread._display.words import amount, moment, visible

__all__ = [
    "LONGEST_TEXT",
    "Html",
    "cell",
    "filled",
    "link",
    "named_fields",
    "safe",
    "sheet",
    "shortened",
    "table_rows",
    "tall",
    "text_of",
]

# As an RFC has it, and as browsers read it: no blanks, controls or marks that they repair.
_ADDRESS = re.compile(
    r"https?://[^\s\x00-\x20\x7f-\x9f\u200b-\u206f\ufeff\"'<>\\^`{|}]+", re.IGNORECASE
)
_HOST = re.compile(r"[a-z0-9.-]+(:\d+)?|\[[0-9a-f:.]+\](:\d+)?", re.IGNORECASE)

MOST_CHARACTERS = 1_500
MOST_LINES = 25
LONGEST_WORD = 20
LONGEST_TEXT = 20_000
"""So much of one value is shown; whole, a page with some hundred large ones would not open."""


class Html(str):
    """Markup that stands as it is; any other text is escaped."""

    __slots__ = ()


def safe(text: str) -> Html:
    """Text as markup that shows it, and does nothing else."""
    return Html(escape(visible(text)))


def link(address: str, label: str | None = None) -> Html:
    """A link where an address is plain http or https, else its text alone.

    Without a ``label`` it says the address. It tells the other side nothing of the notebook.
    """
    if not followed(address):
        return Html(f"<bdi>{safe(address)}</bdi>")
    return Html(
        f'<a href="{escape(address)}" title="{escape(address)}" target="_blank" '
        f'rel="noopener noreferrer nofollow"><bdi>{safe(label or address)}</bdi></a>'
    )


def followed(address: str) -> bool:
    """Whether an address may be a link: nothing in it that is read in two ways, no password."""
    if not _ADDRESS.fullmatch(address):
        return False
    try:
        return bool(_HOST.fullmatch(urlsplit(address).netloc))
    except ValueError:
        return False


def named_fields(record: Any) -> list[tuple[str, Any]]:
    """The fields of a model or of a JSON object; anything else is one field."""
    if isinstance(record, Mapping):
        return [(str(name), value) for name, value in record.items()]
    if is_dataclass(record):
        return [(column.name, getattr(record, column.name)) for column in fields(record)]
    return [("value", record)]


def filled(value: Any) -> bool:
    """Whether a value says anything."""
    return value is not None and value != {} and value != ()


def text_of(value: Any) -> str:
    """A value in words: times in UTC, yes and no, the parts of what has parts."""
    match value:
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case Mapping():
            return ", ".join(f"{name} = {text_of(held)}" for name, held in value.items())
        case tuple() | list():
            return ", ".join(text_of(item) for item in value)
    if is_dataclass(value):
        return " ".join(text_of(held) for _, held in named_fields(value) if filled(held))
    return str(value)


def shortened(text: str, longest: int) -> str:
    """At most so many characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def counted(text: str) -> str:
    """At most LONGEST_TEXT characters, and how many more there are."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… {amount(len(text) - LONGEST_TEXT, 'more character')}"


def tall(text: str) -> bool:
    """Whether it would push all else out of sight, and so has to scroll within its own place."""
    return len(text) > MOST_CHARACTERS or text.count("\n") > MOST_LINES


def cell(value: Any) -> Html:
    """What stands in a cell; a dash where there is nothing."""
    if isinstance(value, Html):
        return value
    return Html("&ndash;") if value is None else safe(text_of(value))


def table_rows(rows: Iterable[tuple[str, Any]]) -> Html:
    """A line for each name and value; text that is tall scrolls."""
    return Html("".join(f"<tr>{_name(name)}{_held(value)}</tr>" for name, value in rows))


def _name(name: str) -> str:
    # Names of a service's own choice may be of any length; others are not broken within a word.
    words = max(map(len, name.split()), default=0) <= LONGEST_WORD
    kind = ' class="br-words"' if words else ""
    return f'<th scope="row"{kind}>{safe(name)}</th>'


def _held(value: Any) -> str:
    # What is markup already was made of an address.
    if value is not None and not isinstance(value, Html):
        value = counted(text_of(value))
    if isinstance(value, str) and not isinstance(value, Html) and tall(value):
        # What scrolls is reached by keys as well.
        return f'<td><div class="br-tall" dir="auto" tabindex="0">{safe(value)}</div></td>'
    return f'<td dir="auto">{cell(value)}</td>'


def sheet(caption: str, rows: Iterable[tuple[str, Any]]) -> Html:
    """A table of names and values; the caption is escaped unless it is `Html`."""
    return Html(
        f"<table><caption>{cell(caption)}</caption><tbody>{table_rows(rows)}</tbody></table>"
    )
