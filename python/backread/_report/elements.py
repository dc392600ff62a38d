"""What the sections are made of: tables, charts with their legend, and text from strangers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from backread._display.addresses import hide_addresses
from backread._display.html import Html, shortened
from backread._display.words import is_invisible, line
from backread._report.charts import Bars, chart, swatch
from backread.mirror.figures import Figures

__all__ = ["MOST_UNITS", "Cell", "cut", "figure", "operator_names", "table", "words_only"]

LONGEST_NAME = 60
MOST_UNITS = 200
"""The most days, weeks or months in a chart: the last ones."""

Cell = str | int | Html


def figure(heading: str, note: str, bars: Bars, name: str, details: Html, size: str) -> Html:
    # There is nothing to draw if no message has a time.
    drawn = chart(bars, name) if bars.labels else ""
    legend = ""
    if len(bars.series) > 1:
        entries = "".join(
            f"<li>{swatch(each.colour)} {escape(each.name)}</li>" for each in bars.series
        )
        legend = f'<ul class="legend">{entries}</ul>'
    return Html(
        f'<section class="{size}"><figure><figcaption><h2>{escape(heading)}</h2>'
        f'<p class="note">{escape(note)}</p></figcaption>{legend}{drawn}</figure>'
        f"<details><summary>The figures as a table</summary>{details}</details></section>"
    )


def words_only(heading: str, note: str, words: str, size: str) -> Html:
    return Html(
        f'<section class="{size}"><h2>{escape(heading)}</h2><p class="note">{escape(note)}</p>'
        f"<p>{escape(words)}</p></section>"
    )


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Html:
    """A table that scrolls; numbers and what stands below their heads are right-aligned."""
    numbers = [bool(rows) and _is_number(value) for value in (rows[0] if rows else columns)]
    head = "".join(
        f'<th scope="col"{_kind(number)}>{escape(name)}</th>'
        for name, number in zip(columns, numbers, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            _cell(value, number, place == 0)
            for place, (value, number) in enumerate(zip(row, numbers, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Cell, number: bool, first: bool) -> str:
    if isinstance(value, int):
        text: str = f"{value:,}"
    else:
        text = value if isinstance(value, Html) else escape(value)
    if first:
        return f'<th scope="row"><bdi>{text}</bdi></th>'
    return f"<td{_kind(number)}>{text}</td>"


def _kind(number: bool) -> str:
    return ' class="number"' if number else ""


def _is_number(value: Cell) -> bool:
    return isinstance(value, int) or (
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
    shown = shortened(line(hide_addresses(text or "")), LONGEST_NAME)
    return "" if is_invisible(shown) else shown
