"""The main figures as text that fits a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backread._display.words import line, odd_values
from backread._report.elements import operator_names
from backread._report.words import (
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

__all__ = ["figures_text"]

WIDTH = 80
NAME = 24
MOST = 5


def figures_text(figures: Figures, name: str) -> str:
    """The main figures, ending with a line break."""
    return "".join(f"{plain(each).rstrip()}\n" for each in _lines(figures, name))


def _lines(figures: Figures, name: str) -> Iterator[str]:
    totals, responses, states = figures["totals"], figures["responses"], figures["states"]
    invitations, asked = figures["invitations"], responses["asked"]
    yield from _wrapped(title(figures, line(name)))
    for sentence in coverage_lines(figures["coverage"]):
        yield from _wrapped(line(sentence))
    if odd := odd_values(figures["coverage"]["odd_values"]):
        yield from _wrapped(f"{odd}.")
    if not totals["messages"]:
        yield ""
        yield from _wrapped(no_data(figures))
        return
    yield ""
    yield from _wrapped(
        f"{span(figures)}{f', only messages {p}' if (p := period(figures)) else ''}"
    )
    yield from _table(
        (
            ("messages", totals["messages"], f"in {totals['conversations']:,} conversations"),
            (
                "by users",
                totals["user_messages"],
                percent(totals["user_messages"], totals["messages"]),
            ),
            (
                "by operators",
                totals["operator_messages"],
                percent(totals["operator_messages"], totals["messages"]),
            ),
            ("with a file", figures["attachments"]["messages"], ""),
            ("busiest", _busiest(figures), "for users' messages"),
            (f"busiest {figures['unit']}", _peak(figures), ""),
        )
    )
    yield ""
    hours = figures["opening_hours"]
    yield from _wrapped(f"First response{f', within the opening hours {hours}' if hours else ''}")
    yield from _table(
        (
            ("median", seconds(responses["p50_seconds"]), "half took at most this long"),
            ("90% within", seconds(responses["p90_seconds"]), ""),
            (
                "answered",
                responses["answered"],
                f"{percent(responses['answered'], asked)} of {asked:,} asked",
            ),
            *(
                (("of them", outside, "answered outside opening hours"),)
                if (outside := responses["answered_outside_hours"])
                else ()
            ),
            (
                "not answered",
                responses["unanswered"],
                percent(responses["unanswered"], asked),
            ),
            *(
                (("unknown", responses["unknown"], "not read to the end"),)
                if responses["unknown"]
                else ()
            ),
        )
    )
    yield ""
    yield "Conversations"
    yield from _table(
        (
            (
                "user wrote last",
                states["user_wrote_last"],
                percent(states["user_wrote_last"], totals["conversations"]),
            ),
            (
                "operator wrote last",
                states["operator_wrote_last"],
                percent(states["operator_wrote_last"], totals["conversations"]),
            ),
            (
                "unread by operators",
                states["unread_by_operator_conversations"],
                f"{states['unread_by_operator_messages']:,} messages",
            ),
            (
                "unread by users",
                states["unread_by_user_conversations"],
                f"{states['unread_by_user_messages']:,} messages",
            ),
            (
                "invitations",
                invitations["sent"],
                f"{percent(invitations['followed'], invitations['sent'])} before a user's message",
            ),
        )
    )
    yield from _operators(figures)
    yield ""
    yield from _wrapped("-o report.html writes all of it with charts, --format json as JSON.")


def _operators(figures: Figures) -> Iterator[str]:
    if not figures["operators"]:
        return
    from rich.cells import set_cell_size

    names = operator_names(figures)
    yield ""
    yield f"{'Operator':{NAME}}   messages  conversations       median          90%"
    for each in figures["operators"][:MOST]:
        name = set_cell_size(plain(names[each["id"]]), NAME)
        yield (
            f"{name}  {each['messages']:>9,}  {each['conversations']:>13,}  "
            f"{seconds(each['p50_seconds']):>11}  {seconds(each['p90_seconds']):>11}"
        )
    if figures["operators_total"] > MOST:
        yield f"and {figures['operators_total'] - MOST:,} more"


def _busiest(figures: Figures) -> str:
    hour = max(figures["hours"], key=lambda each: each["user_messages"], default=None)
    if hour is None:
        return "–"
    return f"{WEEKDAYS[hour['weekday'] - 1][:3]} {hour['hour']:02}:00"


def _peak(figures: Figures) -> str:
    peak = max(figures["volume"], key=lambda each: each["messages"], default=None)
    return "–" if peak is None else unit_label(peak["start"], figures["unit"])


def _table(rows: Sequence[tuple[str, str | int, str]]) -> Iterator[str]:
    for name, value, more in rows:
        text = f"{value:,}" if isinstance(value, int) else value
        yield f"  {name:20} {text:>12}  {more}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)
