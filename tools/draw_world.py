"""Draws how a made-up world is spread: lengths, hours, languages and so on, as one SVG.

Usage: ``python tools/draw_world.py [PATH]``; PATH is docs/images/world.svg unless told. The same
generator draws the same file, to the byte; a test holds the committed one against it.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from backread.testing import World

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "world.svg"
USERS = 1_000_000
EVERY = 400
SEED = 1
MOST = 100

LENGTHS = (0, 1, 2, 4, 8, 16, 32, 64, MOST + 1)
REPLIES = (0, 8, 15, 30, 60, 120, 240, 480, 960, 10**9)
REPLY_NAMES = ("8 s", "15 s", "30 s", "1 min", "2", "4", "8", "16 min", "more")
LETTERS = (0, 10, 20, 30, 40, 50, 60, 80, 100, 10**9)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

COLUMNS, WIDTH, HEIGHT, MARGIN, HEAD = 2, 440, 190, 24, 64
STYLE = """
  svg { font: 12px system-ui, sans-serif; }
  .paper { fill: #ffffff; } .bar { fill: #2f6fb2; }
  .text { fill: #57606a; } .title { fill: #1f2328; font-weight: 600; font-size: 13px; }
  .head { fill: #1f2328; font-weight: 600; font-size: 17px; } .line { stroke: #d0d7de; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; } .bar { fill: #5aa2ea; }
    .text { fill: #9da7b1; } .title, .head { fill: #e6edf3; } .line { stroke: #30363d; }
  }
"""


@dataclass(slots=True)
class Sample:
    """What was counted in the users looked at."""

    users: int = 0
    messages: int = 0
    lengths: list[int] = field(default_factory=list)
    replies: list[float] = field(default_factory=list)
    letters: list[int] = field(default_factory=list)
    hours: Counter[int] = field(default_factory=Counter)
    weekdays: Counter[int] = field(default_factory=Counter)
    months: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)

    def add(self, user: Any, messages: Sequence[Any]) -> None:
        """Counts one user and the user's messages."""
        self.users += 1
        self.lengths.append(len(messages))
        # https://shop.example.com/<language>/...
        self.languages[user["last_url"].split("/")[3]] += 1
        asked: datetime | None = None
        answered = False
        for message in messages:
            at = datetime.fromisoformat(message["created_at"])
            self.messages += 1
            self.hours[at.hour] += 1
            self.weekdays[at.weekday()] += 1
            self.months[f"{at:%Y-%m}"] += 1
            self.letters.append(len(message["body"]))
            by_user = message["sender_type"] == "user"
            if by_user and asked is None:
                asked = at
            elif asked is not None and not by_user and not answered:
                self.replies.append((at - asked).total_seconds())
                answered = True
            self.mark(message, by_user=by_user)

    def mark(self, message: Any, *, by_user: bool) -> None:
        """Counts what only some messages have."""
        marks = {
            "sent by the user": by_user,
            "with a file": message["file_url"] is not None,
            "unread by the user": not message["read_by_user"],
            "unread by an operator": not message["read_by_operator"],
            "automatic invitation": message["auto_invitation"],
            "operator has no picture": not by_user
            and message["sender"]["picture_thumb_url"] is None,
        }
        self.marks.update(name for name, there in marks.items() if there)


def sampled() -> Sample:
    """Every 400th user of a million, so that the years show."""
    world = World(SEED, USERS, (0, MOST))
    sample = Sample()
    for user_id in world.user_ids()[::EVERY]:
        messages = [world.message(user_id, one) for one in world.message_ids(user_id)]
        sample.add(world.user(user_id), messages)
    return sample


def binned(values: Iterable[float], edges: Sequence[int]) -> list[int]:
    """How many values lie from each edge up to the next."""
    values = sorted(values)
    return [sum(low <= value < high for value in values) for low, high in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of bars: a name (empty: none is written) and a count for each."""

    title: str
    names: Sequence[str]
    counts: Sequence[int]
    whole: int
    lying: bool = False

    def draw(self) -> list[str]:
        """Its elements, with the upper left corner at 0, 0."""
        head = f'<text class="title" x="0" y="12">{escape(self.title)}</text>'
        return [head, *(self.lying_bars() if self.lying else self.standing_bars())]

    def share(self, count: int) -> float:
        """A count in per cent."""
        return 100 * count / self.whole

    def standing_bars(self) -> list[str]:
        """Bars side by side over their names, and a scale in per cent."""
        left, top, bottom = 38, 28, HEIGHT - 34
        most = max(self.counts)
        step = (WIDTH - left) / len(self.counts)
        drawn = []
        ticks = scale(self.share(most))
        for tick in ticks:
            y = bottom - (bottom - top) * tick / ticks[-1]
            drawn.append(f'<line class="line" x1="{left}" y1="{y:.1f}" x2="{WIDTH}" y2="{y:.1f}"/>')
            drawn.append(
                f'<text class="text" x="{left - 6}" y="{y + 4:.1f}"'
                f' text-anchor="end">{tick:g} %</text>'
            )
        for number, (name, count) in enumerate(zip(self.names, self.counts, strict=True)):
            height = (bottom - top) * self.share(count) / ticks[-1]
            x = left + number * step
            drawn.append(
                f'<rect class="bar" x="{x + step * 0.1:.1f}" y="{bottom - height:.1f}"'
                f' width="{step * 0.8:.1f}" height="{height:.1f}"/>'
            )
            if name:
                drawn.append(
                    f'<text class="text" x="{x + step / 2:.1f}" y="{bottom + 16}"'
                    f' text-anchor="middle">{escape(name)}</text>'
                )
        return drawn

    def lying_bars(self) -> list[str]:
        """Bars below each other behind their names, each with its share."""
        left, top = 150, 28
        step = (HEIGHT - 34 - top) / len(self.counts)
        drawn = []
        for number, (name, count) in enumerate(zip(self.names, self.counts, strict=True)):
            y = top + number * step
            width = (WIDTH - left - 50) * self.share(count) / 100
            middle = y + step / 2 + 4
            drawn.append(
                f'<text class="text" x="{left - 8}" y="{middle:.1f}"'
                f' text-anchor="end">{escape(name)}</text>'
            )
            drawn.append(
                f'<rect class="bar" x="{left}" y="{y + step * 0.12:.1f}"'
                f' width="{width:.1f}" height="{step * 0.76:.1f}"/>'
            )
            drawn.append(
                f'<text class="text" x="{left + width + 6:.1f}" y="{middle:.1f}">'
                f"{self.share(count):.1f} %</text>"
            )
        return drawn


def scale(most: float) -> list[float]:
    """Two to five round per cents from 0 up to ``most`` or just above."""
    step = next(step for step in (1, 2, 5, 10, 20, 25, 50) if most <= 4 * step)
    return [float(tick) for tick in range(0, int(most) + step + 1, step) if tick < most + step]


def ranges(edges: Sequence[int]) -> list[str]:
    """What to call the numbers from each edge up to the next."""
    last = [f"{edges[-2]}+"]
    return [
        str(low) if high == low + 1 else f"{low}-{high - 1}" for low, high in pairwise(edges[:-1])
    ] + last


def panels(sample: Sample) -> list[Panel]:
    """The charts, in the order they are read."""
    languages = sample.languages.most_common()
    first, last = min(sample.months), max(sample.months)
    months = [
        f"{year}-{month:02}"
        for year in range(int(first[:4]), int(last[:4]) + 1)
        for month in range(1, 13)
        if first <= f"{year}-{month:02}" <= last
    ]
    marks = sample.marks.most_common()
    return [
        Panel("Messages of a user", ranges(LENGTHS), binned(sample.lengths, LENGTHS), sample.users),
        Panel(
            "First answer within",
            REPLY_NAMES,
            binned(sample.replies, REPLIES),
            len(sample.replies),
        ),
        Panel(
            "Hour of a message (UTC)",
            [str(hour) if hour % 3 == 0 else "" for hour in range(24)],
            [sample.hours[hour] for hour in range(24)],
            sample.messages,
        ),
        Panel(
            "Weekday of a message",
            WEEKDAYS,
            [sample.weekdays[day] for day in range(7)],
            sample.messages,
        ),
        Panel(
            "Month of a message",
            [month[:4] if month.endswith("-01") else "" for month in months],
            [sample.months[month] for month in months],
            sample.messages,
        ),
        Panel(
            "Characters of a message",
            ranges(LETTERS),
            binned(sample.letters, LETTERS),
            sample.messages,
        ),
        Panel(
            "Language of a user",
            [name for name, _ in languages],
            [count for _, count in languages],
            sample.users,
        ),
        Panel(
            "Share of all messages",
            [name for name, _ in marks],
            [count for _, count in marks],
            sample.messages,
            lying=True,
        ),
    ]


def drawing(sample: Sample) -> str:
    """The whole picture."""
    charts = panels(sample)
    rows = -(-len(charts) // COLUMNS)
    width = MARGIN + COLUMNS * (WIDTH + MARGIN)
    height = HEAD + rows * (HEIGHT + MARGIN)
    head = f"A made-up world: {sample.users:,} of {USERS:,} users, {sample.messages:,} messages"
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{head}">',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        f'<text class="head" x="{MARGIN}" y="36">{head}</text>',
    ]
    for number, chart in enumerate(charts):
        row, column = divmod(number, COLUMNS)
        x, y = MARGIN + column * (WIDTH + MARGIN), HEAD + row * (HEIGHT + MARGIN)
        lines += [f'<g transform="translate({x} {y})">', *chart.draw(), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: Sequence[str]) -> None:
    """Draws to the path that is named, or to the one in docs."""
    path = Path(arguments[0]) if arguments else PICTURE
    path.write_text(drawing(sampled()), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
