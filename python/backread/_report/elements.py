"""What the sections are made of: tables, some with bars, charts, and text from strangers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Self

from backread._client.privacy import hide_emails
from backread._display.html import Html, shortened
from backread._display.words import is_invisible, line
from backread._report.charts import Columns, bar, chart, legend
from backread._report.figures import Figures, percent

LONGEST_NAME = 60
NOTHING = ("0", "–", "·")
MOST_UNITS = 200
"""The most days, weeks or months in a chart: the last ones."""


class Listed(Html):
    """A number that counts conversations or their messages, as a link to the list of them.

    The link is completed or left out by `report_html`; ``query`` is of the page of `backread
    browse`, such as ``figure=unanswered``.
    """

    __slots__ = ()

    def __new__(cls, value: int | str, query: str) -> Self:
        text = _text(value)
        # The remaining types of attachments have no list.
        if text not in NOTHING and query != "figure=files.other":
            text = f'<a href="list:{escape(query)}">{text}</a>'
        return super().__new__(cls, text)


Cell = str | int | Html


def section(heading: str, note: str, content: str, size: str = "half") -> Html:
    """A card of the page, across half of it or the ``full`` width; the content is markup."""
    about = f'<p class="note">{escape(note)}</p>' if note else ""
    return Html(f'<section class="{size}"><h2>{escape(heading)}</h2>{about}{content}</section>')


def figure(heading: str, note: str, columns: Columns, name: str, details: Html, size: str) -> Html:
    """A section with a chart, and its figures as a table on demand."""
    # There is nothing to draw if no message has a time.
    drawn = chart(columns, name) if columns.labels else ""
    names = legend([(each.name, each.colour) for each in columns.series])
    table = f"<details><summary>The figures as a table</summary>{details}</details>"
    return section(heading, note, f"{names}{drawn}{table}", size)


def shares(
    caption: str,
    columns: tuple[str, str, str],
    counts: Sequence[tuple[str, int, int, str]],
    colour: int,
    more: Sequence[Sequence[Cell]] = (),
) -> Html:
    """A table of names with a count, its share of a whole, and a bar; ``more`` rows have none.

    Each count has the name of its list in `Figures`.
    """
    largest = max((count for _, count, *_ in counts), default=0)
    rows = [
        (name, Listed(count, f"figure={listed}"), percent(count, whole))
        for name, count, whole, listed in counts
    ]
    bars = [bar(count, largest, colour) for _, count, *_ in counts]
    return table(caption, columns, [*rows, *more], bars)


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    bars: Sequence[str] = (),
) -> Html:
    """A table that scrolls; numbers and what stands below their heads are right-aligned.

    ``bars`` are those of the first rows, and are drawn below the names.
    """
    numbers = [bool(rows) and _is_number(value) for value in (rows[0] if rows else columns)]
    head = "".join(
        f'<th scope="col"{_kind(number)}>{escape(name)}</th>'
        for name, number in zip(columns, numbers, strict=True)
    )
    body = ""
    for place, (first, *others) in enumerate(rows):
        cells = "".join(
            f"<td{_kind(number)}>{_text(value)}</td>"
            for value, number in zip(others, numbers[1:], strict=True)
        )
        drawn = "".join(bars[place : place + 1])
        body += f'<tr><th scope="row"><bdi>{_text(first)}</bdi>{drawn}</th>{cells}</tr>'
    return Html(
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _text(value: Cell) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, Html) else escape(value)


def _kind(number: bool) -> str:
    return ' class="number"' if number else ""


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | Listed) or (
        (not isinstance(value, Html) and value[:1].isdigit()) or value == "–"
    )


def operator_names(figures: Figures) -> dict[int | None, str]:
    """The operators' names by their ids; a name that several have is followed by the id."""
    names = {each["id"]: cut(each["name"]) for each in figures["operators"]}
    counts = Counter(names.values())
    return {key: _operator_name(key, name, counts[name] > 1) for key, name in names.items()}


def _operator_name(key: int | None, name: str, repeated: bool) -> str:
    if key is None:
        return name or "without a sender"
    if not name:
        return f"operator {key}"
    return f"{name} ({key})" if repeated else name


def cut(text: str | None) -> str:
    """Text from strangers on one line, harmless, not too long and without e-mail addresses.

    It is empty if no character of it can be seen.
    """
    shown = shortened(line(hide_emails(text or "")), LONGEST_NAME)
    return "" if is_invisible(shown) else shown
