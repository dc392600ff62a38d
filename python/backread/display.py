"""How models look in a notebook: small plain tables, everything in them escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backread.mirror.report import SyncReport
    from backread.models import Message, Page, User, WalkReport

LONGEST_CELL = 160
"""A cell of a table of rows shows this many characters."""


MOST_IDS = 10
"""So many ids stand for a longer row of them."""


def user_html(user: User) -> str:
    """One user as a table of its fields; the custom properties are rows of their own."""
    rows = [
        (name, value) for name, value in _fields(user) if name not in ("user_attributes", "extra")
    ]
    rows += [
        (f"user_attributes: {attribute.name}", attribute.value)
        for attribute in user.user_attributes or ()
    ]
    rows += user.extra.items()
    return _sheet(f"User {user.id}", rows)


def message_html(message: Message) -> str:
    """One message as a table of its fields; the sender's fields are rows of their own."""
    rows: list[tuple[str, Any]] = []
    for name, value in _fields(message):
        if name == "sender" and message.sender is not None:
            rows += [(f"sender: {part}", held) for part, held in _fields(value) if part != "extra"]
            rows += [(f"sender: {part}", held) for part, held in message.sender.extra.items()]
        elif name == "extra":
            rows += message.extra.items()
        else:
            rows.append((name, value))
    return _sheet(f"Message {message.id}", rows)


def page_html(page: Page[Any]) -> str:
    """A page as a table with one line for each row, and the envelope as its caption."""
    records = [dict(_fields(item)) for item in page.items]
    columns = list(dict.fromkeys(name for record in records for name in record))
    # A column that no row fills says nothing.
    columns = [name for name in columns if any(_filled(record.get(name)) for record in records)]
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{_text(record.get(name), LONGEST_CELL)}</td>" for name in columns)
        + "</tr>"
        for record in records
    )
    caption = (
        f"Page: {len(page.items)} rows, offset {_text(page.offset)}, "
        f"limit {_text(page.limit)}, total {_text(page.total)}"
    )
    return (
        f"<table><caption>{caption}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def report_html(report: WalkReport) -> str:
    """A report as a table of its fields, those that do not apply left out."""
    rows = [
        (name, value)
        for name, value in _fields(report)
        if name != "certificate" and (_filled(value) or isinstance(value, int))
    ]
    return _sheet(f"WalkReport: {report.certificate}", rows)


def sync_report_html(report: SyncReport) -> str:
    """What a sync read and changed as a table; of the uncertified users a few, and how many."""
    rows: list[tuple[str, Any]] = []
    for name, value in _fields(report):
        if isinstance(value, dict):
            rows.append((name, ", ".join(f"{count:,} {kind}" for kind, count in value.items())))
        elif name == "uncertified_users" and len(value) > MOST_IDS:
            some = ", ".join(map(str, value[:MOST_IDS]))
            rows.append((name, f"{some} and {len(value) - MOST_IDS:,} more"))
        elif name != "run_id" and _filled(value):
            rows.append((name, value))
    return _sheet(f"SyncReport: run {report.run_id}", rows)


def profile_html(lines: Iterable[tuple[str, str]]) -> str:
    """A service's profile as a table, one line for each finding."""
    return _sheet("ServiceProfile", lines)


def listing_html(text: str) -> str:
    """What a listing lists; nothing is asked of the service to show it."""
    return f"<code>{escape(text)}</code>"


def _fields(record: Any) -> list[tuple[str, Any]]:
    if isinstance(record, Mapping):
        return list(record.items())
    if is_dataclass(record):
        return [(column.name, getattr(record, column.name)) for column in fields(record)]
    return [("value", record)]


def _filled(value: Any) -> bool:
    return value is not None and value != {} and value != ()


def _sheet(caption: str, rows: Iterable[tuple[str, Any]]) -> str:
    body = "".join(
        f"<tr><th>{escape(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{body}</tbody></table>"


def _text(value: Any, longest: int | None = None) -> str:
    if value is None:
        return "&ndash;"
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ", timespec="milliseconds")
    elif is_dataclass(value):
        text = " ".join(str(held) for name, held in _fields(value) if _filled(held))
    elif isinstance(value, tuple):
        text = ", ".join(_plain(item) for item in value)
    else:
        text = str(value)
    if longest is not None and len(text) > longest:
        text = text[: longest - 1] + "…"
    return escape(text)


def _plain(item: Any) -> str:
    if is_dataclass(item):
        return " = ".join(str(held) for _, held in _fields(item) if _filled(held))
    return str(item)
