"""A service profile as text, one line per finding."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING

from backread._display.words import moment, yes_or_no
from backread._profile.findings import (
    AnswerProfile,
    FieldProfile,
    Follows,
    LimitAnswer,
    ListOrder,
    ListProfile,
    PastEnd,
)

if TYPE_CHECKING:
    from backread.profile import ServiceProfile

NO_ORDER = "the rows are in the order of none of their fields"
"""The note of a list without an order; any other note says why none was measured."""


def lines(profile: ServiceProfile) -> list[tuple[str, str]]:
    """The name and text of each finding."""
    http = profile.http
    rows: list[tuple[str, str | None]] = [
        ("measured at", moment(profile.measured_at.replace(microsecond=0))),
        ("requests", f"{profile.requests}"),
        ("default page", _rows(profile.default_page)),
        ("largest page", _rows(profile.largest_page)),
        ("limit 0", _limit(profile.limit_zero)),
        ("limit 100", _limit(profile.limit_hundred)),
    ]
    for name, found in (("users", profile.users), ("messages", profile.messages)):
        rows += [
            (f"{name}: order", _order(found.order, profile.notes.get(f"{name}.order"))),
            (f"{name}: same sequence each time", _yes(found.stable)),
            (f"{name}: total is exact", _total(found)),
            (f"{name}: pages cut short", _yes(found.short_pages)),
            (f"{name}: past the end", _past(found.past_end)),
        ]
    senders = profile.sender_types
    rows += [
        ("message ids unique across users", _yes(profile.message_ids_unique)),
        ("sender types", None if senders is None else ", ".join(senders)),
        ("updated_at follows messages", _advised(profile.updated_at_follows)),
        ("online_at follows messages", _follows(profile.online_at_follows)),
    ]
    rows += [
        (each.name.replace("_", " "), _answer(getattr(profile.refusals, each.name)))
        for each in fields(profile.refusals)
    ]
    validators = http.validators
    rows += [
        ("HTTP version", http.version),
        ("compression", http.compression),
        ("validators", None if validators is None else ", ".join(validators) or "none"),
        ("answers 304", _yes(http.not_modified)),
        ("rate-limit headers", ", ".join(http.rate_limit_headers) or "none seen"),
        (
            "latency, median",
            None if http.latency_seconds is None else f"{http.latency_seconds * 1000:.1f} ms",
        ),
        ("statuses", ", ".join(f"{status}: {count}" for status, count in http.statuses.items())),
    ]
    for kind, seen in profile.fields.items():
        rows += [(f"{kind}.{name}", _field(found)) for name, found in seen.items()]
    measured = [(name, "not measured" if value is None else value) for name, value in rows]
    return measured + [(f"note: {path}", reason) for path, reason in profile.notes.items()]


def finding(value: object) -> str:
    """One finding of any type as text."""
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, LimitAnswer):
        return str(_limit(value))
    if isinstance(value, ListOrder):
        return str(_order(value, None))
    if isinstance(value, PastEnd):
        return str(_past(value))
    if isinstance(value, AnswerProfile):
        return str(_answer(value))
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:.1%}"
    return "none" if value is None else str(value)


def _yes(value: bool | None) -> str | None:
    return None if value is None else yes_or_no(value)


def _rows(count: int | None) -> str | None:
    return None if count is None else _count(count, "row")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _limit(found: LimitAnswer | None) -> str | None:
    if found is None:
        return None
    parts = [found.treatment or "answered", f"status {found.answer.status}"]
    return ", ".join([*parts, f"limit {found.applied}"] if found.applied is not None else parts)


def _order(found: ListOrder | None, note: str | None) -> str | None:
    if found is None:
        return "none found" if note == NO_ORDER else None
    return f"{'' if found.exact else 'roughly '}by {found.field}, {found.direction}"


def _total(found: ListProfile) -> str | None:
    if found.total_exact is None or found.total_exact:
        return _yes(found.total_exact)
    if found.total_error:
        return f"no, {abs(found.total_error)} too {'many' if found.total_error > 0 else 'few'}"
    return "no"


def _past(found: PastEnd | None) -> str | None:
    if found is None:
        return None
    return f"{found.gives.replace('_', ' ')}, status {found.status}"


def _follows(found: Follows | None) -> str | None:
    if found is None:
        return None
    return f"{_yes(found.holds)}, for {found.share:.0%} of {_count(found.users, 'user')}"


def _advised(found: Follows | None) -> str | None:
    said = _follows(found)
    # Advice: only the runs of a mirror count as evidence.
    if found is None or not found.holds:
        return said
    return f"{said}: `backread sync --quick` will save requests here"


def _answer(found: AnswerProfile | None) -> str | None:
    if found is None:
        return None
    parts = [f"status {found.status}", found.content_type or "no content type"]
    return ", ".join([*parts, json.dumps(found.shape)] if found.shape is not None else parts)


def _field(found: FieldProfile) -> str:
    parts = [" or ".join(found.types) or "no value"]
    if found.null_share:
        parts.append(f"null {found.null_share:.1%}")
    if found.missing_share:
        parts.append(f"missing {found.missing_share:.1%}")
    if not found.documented:
        parts.append("undocumented")
    return ", ".join(parts)
