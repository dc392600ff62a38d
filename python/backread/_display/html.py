"""HTML for notebooks and pages: escaped text, links, tables and badges; all text is escaped here.

The values come from untrusted users. Text is escaped, terminal control characters are made visible,
text direction is isolated, only plain http and https addresses become links, and no picture is
fetched. Colours are inherited from the page, with tints that work in light and dark themes; without
the style, as in an untrusted notebook, the same content shows as plain tables and lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from html import escape
from typing import Any, Literal
from urllib.parse import urlsplit

from backread._display.style import TABLES
from backread._display.words import amount, counts, moment, some_ids, visible, yes_or_no

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

LONGEST_CELL = 160
"""The characters shown of a name, or in a cell of a table of rows."""

LONGEST_LINE = 32
"""A value of up to this many characters stays on one line."""

"""The number of ids shown of a longer list."""

LEADING = (
    "user_id",
    "id",
    "created_at",
    "sender_type",
    "sender",
    "sender_forename",
    "sender_surname",
    "sender_name",
)
"""The first columns of a table of messages: what follows the body is seldom in view."""


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
    """A value as text: times in UTC, booleans as yes and no, containers by their parts.

    A class whose values are shown otherwise has a method ``_cell_text``.
    """
    match value:
        case bool():
            return yes_or_no(value)
        case datetime():
            return moment(value)
        case Mapping():
            return ", ".join(f"{name} = {text_of(held)}" for name, held in value.items())
        case tuple() | list():
            return ", ".join(text_of(item) for item in value)
    if hasattr(value, "_cell_text"):
        return str(value._cell_text())
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


def _name(name: str) -> str:
    # The service's own names may be of any length; other names are not broken within a word.
    name = shortened(name, LONGEST_CELL)
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
    """A table of names and values, whose long text scrolls; the caption may be `Html`, or none."""
    above = f"<caption>{cell(caption)}</caption>" if caption else ""
    body = "".join(f"<tr>{_name(name)}{_held(value)}</tr>" for name, value in rows)
    return Html(f"<table>{above}<tbody>{body}</tbody></table>")


def card(caption: str, rows: Iterable[tuple[str, Any]], more: str = "") -> str:
    """The output for an object with a `sheet`, and ``more`` markup below it."""
    return output(TABLES + sheet(caption, rows) + more)


def grid(
    caption: str, label: str, columns: Sequence[str], records: Iterable[Mapping[str, Any]]
) -> str:
    """The output for records with these columns.

    ``caption`` is markup, ``label`` names the part that scrolls.
    """
    head = "".join(
        f'<th scope="col">{safe(shortened(name, LONGEST_CELL))}</th>' for name in columns
    )
    body = "".join(
        f"<tr>{''.join(_grid_cell(record.get(name)) for name in columns)}</tr>"
        for record in records
    )
    # A part that scrolls is reached by keys as well.
    return output(
        f'{TABLES}<div class="br-scroll" role="region" aria-label="{label}" tabindex="0">'
        f'<table class="br-page"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def sender_first(columns: Sequence[str]) -> list[str]:
    """The columns, of messages with those that say who wrote when before the body."""
    leading = [name for name in LEADING if name in columns and "body" in columns]
    return leading + [name for name in columns if name not in leading]


def _grid_cell(value: Any) -> str:
    if value is None:
        return f"<td>{cell(None)}</td>"
    if isinstance(value, Html):
        return f'<td dir="auto" class="br-long">{value}</td>'
    if isinstance(value, datetime):
        return f"<td>{safe(text_of(value).removesuffix(' UTC'))}</td>"
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td class="br-number">{value}</td>'
    text = text_of(value)
    width = ' class="br-long"' if len(text) > LONGEST_LINE or "\n" in text else ""
    return f'<td dir="auto"{width}>{safe(shortened(text, LONGEST_CELL))}</td>'


def marked(text: str, places: Iterable[tuple[int, int]]) -> Html:
    """Text as escaped markup, with its ``places`` (pairs of start and end) marked."""
    parts, end = [], 0
    for low, high in places:
        parts.append(f"{safe(text[end:low])}<mark>{safe(text[low:high])}</mark>")
        end = high
    return Html("".join([*parts, safe(text[end:])]))


def quiet(text: str) -> Html:
    """Escaped text that stands back."""
    return Html(f'<span class="br-quiet">{safe(text)}</span>')


def badge(kind: Literal["proved", "unproved", "open"], text: str) -> Html:
    """A word or two in a frame whose colour says the same."""
    return Html(f'<span class="br-mark br-{kind}">{safe(text)}</span>')


def certificate_badge(name: str, reason: str | None = None) -> Html:
    """A certificate as a badge, and why there is none."""
    proved = name != "uncertified"
    mark = badge("proved", f"✓ {name}") if proved else badge("unproved", f"! {name}")
    return mark if reason is None else Html(f"{mark} {safe(reason)}")


def every_field(report: Any) -> Html:
    """All fields of a report by their names, on demand."""
    rows: list[tuple[str, Any]] = []
    for name, value in named_fields(report):
        match value:
            case Mapping():
                rows.append((name, counts(value) or None))
            case bool() | str() | datetime():
                rows.append((name, value))
            case int() if name != "run_id":
                rows.append((name, f"{value:,}"))
            case float() if name == "seconds":
                rows.append((name, f"{value:,.3f}"))
            case tuple():
                rows.append((name, some_ids(value) or None))
            case _ if is_dataclass(value):
                rows.append((name, dict(named_fields(value))))
            case _:
                rows.append((name, value))
    return Html(f"<details><summary>every field</summary>{sheet('', rows)}</details>")
