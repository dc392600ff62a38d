"""Bars as inline SVG: in the rows of a table, and as a chart of columns over time.

A colour is a class, which the page's style sheet defines in light, dark and print, and an attribute
that draws the same where a server forbids the page's style sheet, as Jenkins does by default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil

from backread._display.html import Html

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#767d86")
LINE = "#d8dde3"
"""The page's colours in light, for attributes."""

FULL_WIDTH = 1_100
HALF_WIDTH = 520
NARROW = 340
"""The units of a chart across the page, across half of it, and on a phone; one is a pixel or so."""

TOP, FOOT, HEIGHT = 10, 215, 240
"""The upper end of the longest column, the foot of all, and the height of a chart with labels."""

FAINT = ' fill-opacity=".5"'
"""Of a unit that is not whole, whose label ends in an asterisk."""

FONT = 12
CHARACTER = 7
"""The height of the text, and about the width of a digit."""


@dataclass(frozen=True, slots=True)
class Series:
    """One colour of a chart; ``colour`` is the number of a colour of the page."""

    name: str
    values: Sequence[float | None]
    colour: int


@dataclass(frozen=True, slots=True)
class Columns:
    """A chart of columns: beside each other, or ``stacked``; ``words`` writes a value.

    ``steps`` are the distances that two lines of the scale may have, ascending.
    """

    title: str
    description: str
    labels: Sequence[str]
    series: Sequence[Series]
    stacked: bool = False
    words: Callable[[float], str] = "{:,.0f}".format
    steps: Sequence[float] = tuple(unit * 10**power for power in range(16) for unit in (1, 2, 5))
    width: int = HALF_WIDTH


def bar(value: float | None, largest: float, colour: int) -> Html:
    """A bar for a row of a table, whose cells say the value; as long as its part of the largest."""
    share = f"{100 * value / largest:.1f}%" if value else "0"
    return Html(
        f'<svg class="bar colour-{colour}" width="100%" height="8" fill="{COLOURS[colour]}" '
        f'aria-hidden="true"><rect width="{share}" height="100%"/></svg>'
    )


def legend(series: Sequence[tuple[str, int]]) -> Html:
    """The names of the colours, if there are several."""
    entries = "".join(
        f'<li><svg class="colour-{colour}" width="9" height="9" fill="{COLOURS[colour]}" '
        f'aria-hidden="true"><rect width="100%" height="100%"/></svg> {escape(name)}</li>'
        for name, colour in series
    )
    return Html(f'<ul class="legend">{entries}</ul>' if len(series) > 1 else "")


def chart(columns: Columns, name: str) -> Html:
    """The chart in its own width and in a narrow one; the page shows the one that fits.

    ``name`` makes the ids of its title and description unique.
    """
    wide = _svg(columns, f"{name}-wide", columns.width)
    narrow = _svg(columns, f"{name}-narrow", NARROW)
    return Html(f'<div class="wide">{wide}</div><div class="narrow" hidden>{narrow}</div>')


def _svg(columns: Columns, name: str, width: int) -> str:
    scale = _scale(columns, 4 if width == NARROW else 6)
    left = 14 + CHARACTER * max(len(columns.words(each)) for each in scale)
    longest = CHARACTER * max(map(len, columns.labels))
    # The last label is centred below its column.
    room = width - left - max(18, longest / 2)
    slot = room / len(columns.labels)
    unit = (FOOT - TOP) / scale[-1]
    parts = []
    for tick in scale:
        y = FOOT - tick * unit
        parts.append(
            f'<path class="line" stroke="{LINE}" d="M{left} {y:.1f}h{room:.1f}"/>'
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{columns.words(tick)}</text>'
        )
    for place in range(0, len(columns.labels), ceil((longest + 14) / slot)):
        x = left + slot * (place + 0.5)
        label = escape(columns.labels[place])
        parts.append(f'<text x="{x:.1f}" y="{FOOT + 18}" text-anchor="middle">{label}</text>')
    side_by_side = 1 if columns.stacked else len(columns.series)
    thickness = 0.84 * slot / side_by_side
    feet = [float(FOOT)] * len(columns.labels)
    for number, series in enumerate(columns.series):
        drawn = []
        for place, (label, value) in enumerate(zip(columns.labels, series.values, strict=True)):
            if not value:
                continue
            top = feet[place] - value * unit
            x = left + slot * (place + 0.08) + thickness * (number % side_by_side)
            drawn.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{thickness:.1f}" '
                f'height="{feet[place] - top:.1f}"{FAINT if label.endswith("*") else ""}>'
                f"<title>{escape(f'{label}, {series.name}: {columns.words(value)}')}</title></rect>"
            )
            if columns.stacked:
                feet[place] = top
        colour = f'class="colour-{series.colour}" fill="{COLOURS[series.colour]}"'
        parts.append(f"<g {colour}>{''.join(drawn)}</g>")
    return (
        f'<svg class="chart" width="{width}" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="{FONT}" '
        f'aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(columns.title)}</title>'
        f'<desc id="{name}-text">{escape(columns.description)}</desc>{"".join(parts)}</svg>'
    )


def _scale(columns: Columns, most: int) -> list[float]:
    """Round values from 0 to at least the largest one: at most ``most`` above 0."""
    values = [[value or 0 for value in each.values] for each in columns.series]
    together = [sum(each) if columns.stacked else max(each) for each in zip(*values, strict=True)]
    largest = max(together, default=0)
    steps = columns.steps
    step = next((each for each in steps if largest / each <= most), steps[-1])
    step *= max(1, ceil(largest / step / most))
    return [step * place for place in range(max(1, ceil(largest / step)) + 1)]
