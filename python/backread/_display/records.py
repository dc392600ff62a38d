"""Users, messages, pages and profiles as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from backread._display.markup import (
    LONGEST_TEXT,
    Html,
    cell,
    filled,
    link,
    named_fields,
    output,
    safe,
    sheet,
    shortened,
    text_of,
)
from backread._display.style import TABLES
from backread._display.words import amount, full_name, sender_name

if TYPE_CHECKING:
    from backread.mirror.published.search import SearchHit
    from backread.models import Message, Page, Sender, User, UserAttribute

__all__ = [
    "marked",
    "message_html",
    "mirror_table_html",
    "page_html",
    "profile_html",
    "search_html",
    "user_html",
    "user_rows",
]

LONGEST_CELL = 160
"""The characters shown in a cell of a table of rows."""

LONGEST_LINE = 32
"""A value of up to this many characters stays on one line."""

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


def user_html(user: User) -> str:
    """One user as a table of the fields; the custom properties are separate rows."""
    return _drawn(sheet(f"User {user.id}", user_rows(user)))


def user_rows(user: User) -> list[tuple[str, Any]]:
    """The names and values of a user's fields, with a row for each custom property."""
    rows: list[tuple[str, Any]] = []
    for name, value in named_fields(user):
        if name == "user_attributes" and value:
            rows += [(f"user_attributes: {each.name}", _attribute(each)) for each in value]
        elif name == "extra":
            rows += (value or {}).items()
        elif name != "id":
            rows.append((name, value))
    return _named(rows)


def message_html(message: Message) -> str:
    """One message as a table of its fields; the sender's fields are separate rows."""
    rows: list[tuple[str, Any]] = []
    for name, value in named_fields(message):
        if name == "sender" and value is not None:
            parts = [part for part in named_fields(value) if part[0] != "extra"]
            rows += [(f"sender: {part}", held) for part, held in [*parts, *value.extra.items()]]
        elif name == "extra":
            rows += (value or {}).items()
        elif name == "file_url" and value is not None:
            # Half an address leads elsewhere.
            whole = len(value) <= LONGEST_TEXT
            rows.append((name, link(value) if whole else value))
        elif name != "id":
            rows.append((name, value))
    return _drawn(sheet(f"Message {message.id}", _named(rows)))


def page_html(page: Page[Any]) -> str:
    """A page as a table with one line for each row, and the envelope as its caption."""
    records = [dict(named_fields(item)) for item in page.items]
    columns = list(dict.fromkeys(name for record in records for name in record))
    # A column that no row fills says nothing.
    columns = [name for name in columns if any(filled(record.get(name)) for record in records)]
    columns = _sender_first(columns)
    rows = ((_column(name, record.get(name)) for name in columns) for record in records)
    envelope = ", ".join(
        f"{name} {'–' if value is None else f'{value:,}'}"
        for name, value in (("offset", page.offset), ("limit", page.limit), ("total", page.total))
    )
    caption = (
        f'Page of {amount(len(page.items), "row")} <span class="br-quiet">{envelope}; '
        "times are UTC</span>"
    )
    return _grid(caption, "rows of the page", columns, rows)


def mirror_table_html(
    name: str, count: int, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> str:
    """The first rows of a table of the mirror, and how large it is as the caption."""
    size = f"{amount(count, 'row')}, {amount(len(columns), 'column')}; times are UTC"
    caption = f'{safe(name)} <span class="br-quiet">{size}</span>'
    ordered = _sender_first(columns)
    records = (dict(zip(columns, row, strict=True)) for row in rows)
    cells = ((_column(each, record[each]) for each in ordered) for record in records)
    return _grid(caption, "first rows of the table", ordered, cells)


def search_html(words: str, hits: Sequence[SearchHit]) -> str:
    """The hits of a search as a table, with the words marked."""
    caption = (
        f"{amount(len(hits), 'message')} with {safe(shortened(words, LONGEST_CELL))} "
        '<span class="br-quiet">times are UTC</span>'
    )
    rows = (
        (
            _column("created_at", hit.created_at),
            _column("user_id", hit.user_id),
            _column("id", hit.id),
            _column("sender", hit.sender_name or hit.sender_type),
            f'<td dir="auto" class="br-long">{marked(hit.snippet, hit.matches)}</td>',
        )
        for hit in hits
    )
    return _grid(caption, "messages found", ("created_at", "user_id", "id", "sender", "body"), rows)


def profile_html(lines: Iterable[tuple[str, str]]) -> str:
    """A service's profile as a table, one line for each finding."""
    return _drawn(sheet("ServiceProfile", _named(lines)))


def _drawn(content: str) -> str:
    return output(TABLES + content)


def _grid(caption: str, label: str, columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(
        f'<th scope="col">{safe(shortened(name, LONGEST_CELL))}</th>' for name in columns
    )
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    # A part that scrolls is reached by keys as well.
    return _drawn(
        f'<div class="br-scroll" role="region" aria-label="{label}" tabindex="0">'
        f'<table class="br-page"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _sender_first(columns: Sequence[str]) -> list[str]:
    """The columns, of messages with those that say who wrote when before the body."""
    if "body" not in columns:
        return list(columns)
    leading = [name for name in LEADING if name in columns]
    return leading + [name for name in columns if name not in leading]


def _named(rows: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(shortened(name, LONGEST_CELL), value) for name, value in rows]


def _attribute(attribute: UserAttribute) -> str | None:
    if not attribute.extra:
        return attribute.value
    return f"{text_of(attribute.value)} ({text_of(attribute.extra)})"


def marked(text: str, places: Iterable[tuple[int, int]]) -> Html:
    """Text as escaped markup, with its ``places`` (pairs of start and end) marked."""
    parts, end = [], 0
    for low, high in places:
        parts.append(f"{safe(text[end:low])}<mark>{safe(text[low:high])}</mark>")
        end = high
    return Html("".join([*parts, safe(text[end:])]))


def _column(name: str, value: Any) -> str:
    if value is None:
        return f"<td>{cell(None)}</td>"
    if isinstance(value, datetime):
        return f"<td>{safe(text_of(value).removesuffix(' UTC'))}</td>"
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td class="br-number">{value}</td>'
    if name == "user_attributes" and isinstance(value, tuple):
        text = ", ".join(f"{text_of(each.name)} = {text_of(_attribute(each))}" for each in value)
    elif name == "sender" and hasattr(value, "extra"):
        text = sender_name(cast("Sender", value)) or text_of(value)
    elif name == "sender" and isinstance(value, Mapping):
        text = full_name(*map(value.get, ("forename", "surname", "name"))) or text_of(value)
    else:
        text = text_of(value)
    width = ' class="br-long"' if len(text) > LONGEST_LINE or "\n" in text else ""
    return f'<td dir="auto"{width}>{safe(shortened(text, LONGEST_CELL))}</td>'
