"""Charts as inline SVG, drawn by pygal and coloured by the page's style sheet.

pygal gives each shape a class, so that the page can colour it by CSS variables. What it adds for
its own script, style sheet and tooltips is removed, which leaves shapes, texts and classes.
Attributes draw the same where a server forbids the page's style sheet, as Jenkins does by default.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

from backread._display.html import Html, shortened

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["FULL_WIDTH", "Bars", "Series", "chart", "load_pygal", "swatch"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#767d86")
LINE = "#d8dde3"
"""The page's colours in light, for attributes."""

FULL_WIDTH = 1_100
HALF_WIDTH = 520
NARROW = 340
"""The units of a chart across the page, across half of it, and on a phone; one is a pixel or so."""

HEIGHT = 250
FONT = 12
ROW = 26
LEFT = 6
RIGHT = 18

# What XML 1.0 cannot have (section 2.2), not even escaped; HTML can, so tables keep it.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

DECIMALS = re.compile(r"(\d+\.\d)\d+")


@dataclass(frozen=True, slots=True)
class Series:
    """One colour of a chart; ``colour`` is the number of a colour of the page."""

    name: str
    values: Sequence[float | None]
    colour: int


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart: ``kind`` says how, ``words`` how a value is written."""

    title: str
    description: str
    labels: Sequence[str]
    series: Sequence[Series]
    kind: Literal["columns", "stacked", "rows"] = "columns"
    words: Callable[[float], str] = "{:,.0f}".format
    steps: Sequence[float] = ()
    width: int = HALF_WIDTH

    @property
    def largest(self) -> float:
        """The length of the longest bar."""
        if self.kind == "stacked":
            stacks = zip(*(each.values for each in self.series), strict=True)
            return max((sum(value or 0 for value in stack) for stack in stacks), default=0)
        return max((value or 0 for each in self.series for value in each.values), default=0)


def load_pygal() -> Any:
    """The module; if it is missing, an ImportError says how to install it."""
    try:
        import pygal  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "pygal":
            raise
        raise ImportError(
            "a report needs pygal for its charts, which is not installed; "
            'run: pip install "backread[report]"',
            name="pygal",
        ) from None
    return pygal


def chart(bars: Bars, name: str) -> Html:
    """The chart in its own width and in a narrow one; the page shows the one that fits.

    ``name`` makes the ids of its title and description unique.
    """
    wide, narrow = (
        _svg(bars, f"{name}-{kind}", width)
        for kind, width in (("wide", bars.width), ("narrow", NARROW))
    )
    return Html(f'<div class="wide">{wide}</div><div class="narrow" hidden>{narrow}</div>')


def swatch(colour: int) -> Html:
    """A small square of the colour."""
    return Html(
        f'<svg class="colour-{colour}" width="9" height="9" fill="{COLOURS[colour]}" '
        'aria-hidden="true"><rect class="rect" width="100%" height="100%"/></svg>'
    )


def _svg(bars: Bars, name: str, width: int) -> str:
    pygal = load_pygal()
    rows = bars.kind == "rows"
    labels = [NOT_XML.sub("\N{REPLACEMENT CHARACTER}", each) for each in bars.labels]
    labels = [_fitting(each, width // 20) if rows else each for each in labels]
    style = pygal.style.Style(label_font_size=FONT, major_label_font_size=FONT)
    longest = max(map(len, labels), default=0) * FONT * 0.6
    ticks = _ticks(bars, width // 110 if rows else 4 if width == NARROW else 6)
    graph = {"columns": pygal.Bar, "stacked": pygal.StackedBar, "rows": pygal.HorizontalBar}
    drawn = graph[bars.kind](
        style=style,
        width=width,
        height=ROW * len(labels) * _bars_in_row(bars) + 44 if rows else HEIGHT,
        margin=LEFT,
        margin_left=LEFT + (_extra_room(labels) if rows else 0),
        # The last label is centred below its column.
        margin_right=RIGHT if rows else max(RIGHT, round(longest / 2)),
        spacing=6,
        show_legend=False,
        x_labels=_unique(labels[::-1] if rows else labels),
        y_labels=ticks,
        truncate_label=-1,
        value_formatter=bars.words,
        no_prefix=True,
        js=[],
    )
    if not rows:
        every = ceil(len(labels) * (longest + 14) / (width - 50))
        drawn.x_labels_major_every = every
        drawn.show_minor_x_labels = every == 1
    for each in bars.series:
        # A horizontal chart is drawn from its foot upwards.
        drawn.add(each.name, list(each.values)[::-1] if rows else list(each.values))
    root = ElementTree.fromstring(drawn.render(is_unicode=False))
    names, colours = [each.name for each in bars.series], [each.colour for each in bars.series]
    _clean(root, names, colours)
    return _markup(root, bars, name, width)


def _bars_in_row(bars: Bars) -> float:
    return 1 if len(bars.series) == 1 else 0.7 * len(bars.series)


def _ticks(bars: Bars, most: int) -> list[float]:
    """Round values from 0 to at least the largest one."""
    largest = bars.largest
    steps = list(bars.steps) or [unit * 10**power for power in range(16) for unit in (1, 2, 5)]
    step = next((each for each in steps if largest / each <= most), steps[-1])
    if largest / step > most:
        step *= ceil(largest / step / most)
    return [step * place for place in range(max(1, ceil(largest / step)) + 1)]


def _columns(text: str) -> int:
    """How wide text is, in characters of the width that pygal leaves room for."""
    wide = (
        unicodedata.east_asian_width(each) in "WF" or each.isupper() or each in "mw"
        for each in text
    )
    return len(text) + sum(wide)


def _fitting(label: str, columns: int) -> str:
    length = len(label)
    while _columns(label[:length]) > columns:
        length -= 1
    return shortened(label, length)


def _extra_room(labels: Sequence[str]) -> float:
    """What wide characters need beyond the room that pygal leaves for characters."""
    columns = max(map(_columns, labels), default=0)
    return (columns - max(map(len, labels), default=0)) * FONT * 0.6


def _unique(labels: Sequence[str]) -> list[str]:
    # pygal looks labels up by their text; zero-width spaces tell equal ones apart.
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, -1) + 1
        found.append(label + "\u200b" * seen[label])
    return found


def _clean(root: Element, names: Sequence[str], colours: Sequence[int]) -> None:
    """Leaves shapes and texts; each bar gets its name and value as a title, for the pointer."""
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
        for name, value in node.attrib.items():
            text = _classes(value, colours) if name == "class" else DECIMALS.sub(r"\1", value)
            node.set(name, text)
    for node in list(root.iter()):
        for child in list(node):
            kind = child.get("class", "")
            if (child.tag in ("defs", "title", "desc") and kind != "value") or "overlay" in kind:
                if child.get("class") != "x_label":
                    node.remove(child)
            elif "background" in kind:
                node.remove(child)
    for series in root.iter("g"):
        kind = series.get("class", "")
        if kind.startswith("axis"):
            across = kind.startswith("axis x")
            series.set("text-anchor", "middle" if across else "end")
            for line in series.iter("path"):
                line.set("stroke", "none" if across else LINE)
                line.set("fill", "none")
        found = re.search(r"serie-(\d+)", kind)
        if found is None:
            continue
        series.set("fill", COLOURS[colours[int(found[1])]])
        for bars in series:
            for bar in list(bars):
                _name_bar(bars, bar, names[int(found[1])])


def _classes(given: str, colours: Sequence[int]) -> str:
    return re.sub(r"color-(\d+)", lambda found: f"colour-{colours[int(found[1])]}", given)


def _name_bar(bars: Element, bar: Element, series: str) -> None:
    texts = {each.get("class"): each.text or "" for each in bar if each.tag == "desc"}
    for each in list(bar):
        if each.tag == "desc":
            bar.remove(each)
    shape = bar.find("rect")
    if shape is None or not (float(shape.get("height", 0)) and float(shape.get("width", 0))):
        bars.remove(bar)
        return
    title = ElementTree.Element("title")
    label = texts.get("x_label", "").replace("\u200b", "")
    title.text = f"{label}, {series}: {texts.get('value', '')}"
    bar.insert(0, title)


def _markup(root: Element, bars: Bars, name: str, width: int) -> str:
    height = root.get("viewBox", f"0 0 {width} {HEIGHT}").split()[-1]
    inner = "".join(ElementTree.tostring(each, encoding="unicode") for each in root)
    return (
        f'<svg class="chart" width="{width}" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="{FONT}" '
        f'aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(bars.title)}</title>'
        f'<desc id="{name}-text">{escape(bars.description)}</desc>{inner}</svg>'
    )
