"""The main figures as text that fits a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from backread._display.words import line, odd_values
from backread._report.elements import operator_names
from backread._report.figures import (
    WEEKDAYS,
    coverage_lines,
    no_data,
    percent,
    period,
    seconds,
    span,
    title,
    unit_label,
)
from backread.cli.text import plain

if TYPE_CHECKING:
    from backread.mirror.figures import Figures


Rows = list[tuple[str, str | int, str]]
"""What is counted, its value, and a remark."""

Section = tuple[str, Rows]
"""A heading and the rows below it."""

WIDTH = 80
NAME = 24
MOST = 5


def figures_text(figures: Figures, name: str) -> str:
    """The main figures, ending with a line break."""
    return "".join(f"{plain(each).rstrip()}\n" for each in _lines(figures, name))


def _lines(figures: Figures, name: str) -> Iterator[str]:
    yield from wrap(title(figures, line(name)), WIDTH)
    for sentence in coverage_lines(figures["coverage"]):
        yield from wrap(line(sentence), WIDTH)
    if odd := odd_values(figures["coverage"]["odd_values"]):
        yield from wrap(f"{odd}.", WIDTH)
    yield ""
    if not figures["totals"]["messages"]:
        yield from wrap(no_data(figures), WIDTH)
        return
    for heading, rows in (_volume(figures), _responses(figures), _conversations(figures)):
        yield from wrap(heading, WIDTH)
        for label, value, more in rows:
            text = f"{value:,}" if isinstance(value, int) else value
            yield f"  {label:20} {text:>12}  {more}"
        yield ""
    yield from _operators(figures)
    yield "-o report.html writes all of it with charts, --format json as JSON."


def _volume(figures: Figures) -> Section:
    totals, limits = figures["totals"], period(figures)
    by_users, by_operators = totals["user_messages"], totals["operator_messages"]
    return f"{span(figures)}{f', only messages {limits}' if limits else ''}", [
        ("messages", totals["messages"], f"in {totals['conversations']:,} conversations"),
        ("by users", by_users, percent(by_users, totals["messages"])),
        ("by operators", by_operators, percent(by_operators, totals["messages"])),
        ("with a file", figures["attachments"]["messages"], ""),
        ("busiest", _busiest(figures), "for users' messages"),
        (f"busiest {figures['unit']}", _peak(figures), ""),
    ]


def _responses(figures: Figures) -> Section:
    found, hours = figures["responses"], figures["opening_hours"]
    asked, unknown = found["asked"], found["unknown"]
    outside = found["answered_outside_hours"] or 0
    answered, unanswered = found["answered"], found["unanswered"]
    rows: Rows = [
        ("median", seconds(found["p50_seconds"]), "half took at most this long"),
        ("90% within", seconds(found["p90_seconds"]), ""),
        ("answered", answered, f"{percent(answered, asked)} of {asked:,} asked"),
        ("of them", outside, "answered outside opening hours"),
        ("never answered", unanswered, percent(unanswered, asked)),
        ("unknown", unknown, "not read to the end"),
    ]
    optional = {"of them": outside, "unknown": unknown}
    heading = f"First response{f', within the opening hours {hours}' if hours else ''}"
    return heading, [row for row in rows if optional.get(row[0], True)]


def _conversations(figures: Figures) -> Section:
    states, invitations = figures["states"], figures["invitations"]
    total, followed = figures["totals"]["conversations"], invitations["followed"]
    by_user, by_operator = states["user_wrote_last"], states["operator_wrote_last"]
    for_operators = f"{states['unread_by_operator_messages']:,} messages"
    for_users = f"{states['unread_by_user_messages']:,} messages"
    share = percent(followed, invitations["sent"])
    return "Conversations", [
        ("user wrote last", by_user, percent(by_user, total)),
        ("operator wrote last", by_operator, percent(by_operator, total)),
        ("unread by operators", states["unread_by_operator_conversations"], for_operators),
        ("unread by users", states["unread_by_user_conversations"], for_users),
        ("invitations", invitations["sent"], f"{share} before a user's message"),
    ]


def _operators(figures: Figures) -> Iterator[str]:
    if not figures["operators"]:
        return
    from rich.cells import set_cell_size

    names = operator_names(figures)
    yield f"{'Operator':{NAME}}   messages  conversations       median          90%"
    for each in figures["operators"][:MOST]:
        name = set_cell_size(plain(names[each["id"]]), NAME)
        yield (
            f"{name}  {each['messages']:>9,}  {each['conversations']:>13,}  "
            f"{seconds(each['p50_seconds']):>11}  {seconds(each['p90_seconds']):>11}"
        )
    if figures["operators_total"] > MOST:
        yield f"and {figures['operators_total'] - MOST:,} more"
    yield ""


def _busiest(figures: Figures) -> str:
    hour = max(figures["hours"], key=lambda each: each["user_messages"], default=None)
    if hour is None:
        return "–"
    return f"{WEEKDAYS[hour['weekday'] - 1][:3]} {hour['hour']:02}:00"


def _peak(figures: Figures) -> str:
    peak = max(figures["volume"], key=lambda each: each["messages"], default=None)
    return "–" if peak is None else unit_label(peak, figures["unit"])
