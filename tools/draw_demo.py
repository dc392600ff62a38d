"""Draws what a mirror of the demo's world shows, as one SVG for the README.

Usage: ``python tools/draw_demo.py [PATH]``; PATH is docs/images/demo.svg unless given. It mirrors
``World(seed=7)`` from the mock and queries the mirror. Every run draws the same bytes; a test
compares them with the committed file. Pages like PyPI's show it as an image: so it has no script,
no HTML within and nothing from outside.
"""

import sys
import tempfile
import textwrap
from collections.abc import Sequence
from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path

from backread import Mirror
from backread.testing import MockServer, World

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "demo.svg"
SEED, USERS, LONGEST = 7, 2_000, 242
TALK = 13723
"""A user whose conversation begins in English, with messages that fit each other."""

WIDTH, HEIGHT, MARGIN, GAP = 880, 404, 24, 36
LEFT = 360
"""The width of the conversation."""
RIGHT = WIDTH - 2 * MARGIN - GAP - LEFT
TOP = 78
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
WAITS = (0, 60, 300, 900, 3600, 10**12)
WAIT_NAMES = ("under 1 min", "1-5 min", "5-15 min", "15-60 min", "over 1 h")
STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .paper { fill: #ffffff; } .bar, .cell { fill: #2f6fb2; } .empty { fill: #eaeef2; }
  .text { fill: #57606a; font-size: 12px; } .title { fill: #1f2328; font-weight: 600; }
  .user { fill: #eaeef2; } .operator { fill: #d6e6f7; } .said { fill: #1f2328; }
  .shell { fill: #1f2328; } .command { fill: #e6edf3; } .answer { fill: #7ee2a8; }
  .shell-text { font: 13px ui-monospace, monospace; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; } .bar, .cell { fill: #5aa2ea; } .empty { fill: #21262d; }
    .text { fill: #9da7b1; } .title, .said { fill: #e6edf3; }
    .user { fill: #21262d; } .operator { fill: #16365a; } .shell { fill: #21262d; }
  }
"""

HOURS = """
    SELECT isodow(utc) - 1, hour(utc), count(*)
    FROM (SELECT created_at AT TIME ZONE 'UTC' AS utc FROM messages) GROUP BY ALL
"""
FIRST_RESPONSES = """
    SELECT first_response_seconds FROM conversations WHERE first_response_seconds IS NOT NULL
"""


def text(kind: str, x: float, y: float, words: str, anchor: str = "start") -> str:
    """One line of text."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def box(
    kind: str, x: float, y: float, width: float, height: float, more: str = 'rx="2"', tip: str = ""
) -> str:
    """One rectangle."""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" {size} {more}>{tip and f"<title>{escape(tip)}</title>"}</rect>'


def conversation(mirror: Mirror) -> list[str]:
    """The first messages of a conversation, as bubbles."""
    talk = mirror.conversation(TALK)
    drawn = [text("title", 0, 0, f"{talk.user.name if talk.user else TALK}")]
    y = 14
    for message in talk[:4]:
        lines = textwrap.wrap(message.body or "", 40)
        by_user = message.sender_type == "user"
        width, height = 7.1 * max(map(len, lines)) + 26, 18 * len(lines) + 12
        x = 0 if by_user else LEFT - width
        drawn.append(box("user" if by_user else "operator", x, y, width, height, 'rx="10"'))
        drawn += [text("said", x + 12, y + 20 + 18 * at, line) for at, line in enumerate(lines)]
        edge, anchor = (x + 4, "start") if by_user else (LEFT - 4, "end")
        drawn.append(
            text("text", edge, y + height + 14, signed(message.created_at, by_user), anchor)
        )
        y += height + 26
    return drawn


def signed(at: datetime | None, by_user: bool) -> str:
    """Who wrote, and when."""
    return f"{'user' if by_user else 'operator'}, {at:%H:%M}"


def hours(mirror: Mirror) -> list[str]:
    """Messages by weekday and hour, darker for more."""
    counts = {(day, hour): count for day, hour, count in mirror.sql(HOURS).fetchall()}
    most = max(counts.values())
    label, step, height = 34, (RIGHT - 34) / 24, 14
    drawn = [text("title", 0, 0, "When people write (UTC)")]
    for day, name in enumerate(WEEKDAYS):
        y = 14 + day * height
        drawn.append(text("text", 0, y + 11, name))
        for hour in range(24):
            count = counts.get((day, hour), 0)
            place = (label + hour * step, y, step - 2, height - 2)
            tip = f"{name} {hour}:00: {count:,} messages"
            drawn.append(box("empty", *place))
            drawn.append(box("cell", *place, f'rx="2" opacity="{count / most:.2f}"', tip))
    drawn += [
        text("text", label + (hour + 0.5) * step, 14 + 7 * height + 14, str(hour), "middle")
        for hour in range(0, 24, 3)
    ]
    return drawn


def first_responses(mirror: Mirror) -> list[str]:
    """How long a user waits for the first response."""
    waits = [wait for (wait,) in mirror.sql(FIRST_RESPONSES).fetchall()]
    shares = [
        100 * sum(low <= wait < high for wait in waits) / len(waits)
        for low, high in pairwise(WAITS)
    ]
    label, height = 92, 20
    drawn = [text("title", 0, 0, "First response")]
    for number, (name, share) in enumerate(zip(WAIT_NAMES, shares, strict=True)):
        y = 14 + number * height
        width = (RIGHT - label - 48) * share / max(shares)
        drawn.append(text("text", 0, y + 13, name))
        drawn.append(box("bar", label, y + 1, width, height - 5))
        drawn.append(text("text", label + width + 8, y + 13, f"{share:.0f} %"))
    return drawn


def drawing(mirror: Mirror, certificate: str) -> str:
    """The whole picture."""
    [(users, messages)] = mirror.sql(
        "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM messages)"
    ).fetchall()
    counts = f"{users:,} users, {messages:,} messages, certificate: {certificate}"
    alternative = (
        f"What a mirror shows: {counts}; a conversation, a heat map of when people write,"
        " and how long they wait for the first response"
    )
    right = MARGIN + LEFT + GAP
    groups: Sequence[tuple[int, int, list[str]]] = (
        (MARGIN, TOP + 14, conversation(mirror)),
        (right, TOP + 14, hours(mirror)),
        (right, TOP + 190, first_responses(mirror)),
    )
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{alternative}">',
        f"<title>{alternative}</title>",
        f"<style>{STYLE}</style>",
        box("paper", 0, 0, WIDTH, HEIGHT, 'rx="8"'),
        box("shell", MARGIN, 18, WIDTH - 2 * MARGIN, 38, 'rx="6"'),
        text("shell-text command", MARGIN + 16, 42, "$ backread sync chats/"),
        text("shell-text answer", WIDTH - MARGIN - 16, 42, counts, "end"),
    ]
    for x, y, drawn in groups:
        lines += [f'<g transform="translate({x} {y})">', *drawn, "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def draw() -> str:
    """Mirrors the demo's world and draws it."""
    world = World(seed=SEED, users=USERS, messages_per_user=(0, LONGEST))
    with tempfile.TemporaryDirectory() as folder, MockServer(world) as server:
        mirror = Mirror(Path(folder) / "chats")
        with server.client() as client:
            report = mirror.sync(client)
        return drawing(mirror, str(report.certificate))


def main(arguments: Sequence[str]) -> None:
    """Draws to the path that is named, or to the one in docs."""
    path = Path(arguments[0]) if arguments else PICTURE
    path.write_text(draw(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
