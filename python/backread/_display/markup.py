"""Values as HTML; all text is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import urlsplit

from backread._display.words import amount, moment, visible, yes_or_no

__all__ = [
    "LONGEST_TEXT",
    "Html",
    "cell",
    "filled",
    "link",
    "named_fields",
    "needs_scrolling",
    "output",
    "safe",
    "sheet",
    "shortened",
    "table_rows",
    "text_of",
]

# Without blanks, controls or marks, which browsers would repair (WHATWG URL).
_ADDRESS = re.compile(
    r"https?://[^\s\x00-\x20\x7f-\x9f\u200b-\u206f\ufeff\"'<>\\^`{|}]+", re.IGNORECASE
)
_HOST = re.compile(r"[a-z0-9.-]+(:\d+)?|\[[0-9a-f:.]+\](:\d+)?", re.IGNORECASE)

MOST_CHARACTERS = 1_500
MOST_LINES = 25
LONGEST_WORD = 20
LONGEST_TEXT = 20_000
"""The longest text shown of one value, so that a page of a hundred large ones still opens."""


class Html(str):
    """Markup that is not escaped again."""

    __slots__ = ()


def output(content: str, kind: str = "", attributes: str = "") -> str:
    """The element with all that a notebook shows of a value.

    Args:
        content: The markup in it, with its style.
        kind: A further class, after a blank.
        attributes: Further attributes, each after a blank.
    """
    # MathJax in JupyterLab and in other notebooks would typeset $...$ in strangers' texts.
    names = f"backread{kind} mathjax_ignore tex2jax_ignore"
    return f'<div class="{names}"{attributes}>{content}</div>'


def safe(text: str) -> Html:
    """Text as escaped markup."""
    return Html(escape(visible(text)))


def link(address: str, label: str | None = None) -> Html:
    """A link if the address is plain http or https, else its text.

    The link sends no referrer. Its text is ``label``, by default the address.
    """
    if not is_safe_link(address):
        return Html(f"<bdi>{safe(address)}</bdi>")
    return Html(
        f'<a href="{escape(address)}" title="{escape(address)}" target="_blank" '
        f'rel="noopener noreferrer nofollow"><bdi>{safe(label or address)}</bdi></a>'
    )


def is_safe_link(address: str) -> bool:
    """Whether an address may be a link: unambiguous and without a password."""
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
    """Whether a value is neither None nor empty."""
    return value is not None and value != {} and value != ()


def text_of(value: Any) -> str:
    """A value as text: times in UTC, booleans as yes and no, containers by their parts."""
    match value:
        case bool():
            return yes_or_no(value)
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
    """The text, cut to at most ``longest`` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def counted(text: str) -> str:
    """The text, cut to LONGEST_TEXT characters, with the number of those left out."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… {amount(len(text) - LONGEST_TEXT, 'more character')}"


def needs_scrolling(text: str) -> bool:
    """Whether the text is so long that it gets its own scroll area."""
    return len(text) > MOST_CHARACTERS or text.count("\n") > MOST_LINES


def cell(value: Any) -> Html:
    """The content of a cell; a dash for None."""
    if isinstance(value, Html):
        return value
    return Html("&ndash;") if value is None else safe(text_of(value))


def table_rows(rows: Iterable[tuple[str, Any]]) -> Html:
    """A table row for each name and value; long text scrolls."""
    return Html("".join(f"<tr>{_name(name)}{_held(value)}</tr>" for name, value in rows))


def _name(name: str) -> str:
    # The service's own names may be of any length; other names are not broken within a word.
    words = max(map(len, name.split()), default=0) <= LONGEST_WORD
    kind = ' class="br-words"' if words else ""
    return f'<th scope="row"{kind}>{safe(name)}</th>'


def _held(value: Any) -> str:
    # Html is a link, which is never cut.
    if value is not None and not isinstance(value, Html):
        value = counted(text_of(value))
    if isinstance(value, str) and not isinstance(value, Html) and needs_scrolling(value):
        # Scrollable text must be reachable by keyboard.
        return f'<td><div class="br-tall" dir="auto" tabindex="0">{safe(value)}</div></td>'
    return f'<td dir="auto">{cell(value)}</td>'


def sheet(caption: str, rows: Iterable[tuple[str, Any]]) -> Html:
    """A table of names and values; the caption is escaped unless it is `Html`."""
    return Html(
        f"<table><caption>{cell(caption)}</caption><tbody>{table_rows(rows)}</tbody></table>"
    )
