"""Draws how offset paging loses a row when another one is deleted, as one SVG for the docs.

Usage: ``python tools/draw_paging.py [PATH]``; PATH is docs/images/paging.svg unless given. Every
run draws the same bytes; a test compares them with the committed file.
"""

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "paging.svg"
ALTERNATIVE = (
    "Two requests of five rows each. Between them row 2 is deleted, so row 6 moves onto the page "
    "that was already read, and the second request begins with row 7: row 6 is lost, silently. "
    "Pages that overlap by three rows share rows 4 and 5, so the second page shows row 6."
)
WIDTH, MARGIN, LABEL, STEP, HEIGHT = 780, 24, 196, 54, 34
STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  .paper { fill: #ffffff; } .text { fill: #57606a; } .title { fill: #1f2328; font-weight: 600; }
  .row { fill: #eaeef2; } .read { fill: #b6d4f2; } .both { fill: #7fb2e5; } .lost { fill: #ffb3a7; }
  .number { fill: #1f2328; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; } .text { fill: #9da7b1; } .title { fill: #e6edf3; }
    .row { fill: #21262d; } .read { fill: #16456f; } .both { fill: #2b6cb0; }
    .lost { fill: #9e3527; } .number { fill: #e6edf3; }
  }
"""

Line = tuple[str, Sequence[tuple[int, str]]]
"""What happens, and the rows in their order, each with how it is drawn."""


def rows(numbers: Sequence[int], **drawn: Sequence[int]) -> list[tuple[int, str]]:
    """The rows of a line; those that are not named are drawn as rows nobody has read yet."""
    kinds = {number: kind for kind, some in drawn.items() for number in some}
    return [(number, kinds.get(number, "row")) for number in numbers]


WITHOUT_2 = (1, 3, 4, 5, 6, 7, 8, 9, 10)
FIRST: Line = ("offset=0 limit=5", rows(range(1, 11), read=range(1, 6)))
DELETED: Line = ("row 2 is deleted", rows(WITHOUT_2, read=(1, 3, 4, 5)))
PARTS: Sequence[tuple[str, Sequence[Line]]] = (
    (
        "A plain loop: the next offset is 5, so row 6 is never read",
        (
            FIRST,
            DELETED,
            ("offset=5 limit=5", rows(WITHOUT_2, read=(1, 3, 4, 5, 7, 8, 9, 10), lost=(6,))),
        ),
    ),
    (
        "backread: pages overlap by three rows and are compared",
        (
            FIRST,
            DELETED,
            ("offset=2 limit=5", rows(WITHOUT_2, read=(1, 3, 6, 7, 8), both=(4, 5))),
        ),
    ),
)


def text(kind: str, x: float, y: float, words: str, anchor: str = "start") -> str:
    """One line of text."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def line(y: int, words: str, drawn: Sequence[tuple[int, str]]) -> list[str]:
    """One line of the picture: its words, and its rows in the order of the list."""
    lines = [text("text", MARGIN, y + 22, words)]
    for place, (number, kind) in enumerate(drawn):
        x = MARGIN + LABEL + place * STEP
        size = f'width="{STEP - 6}" height="{HEIGHT}"'
        lines.append(f'<rect class="{kind}" x="{x}" y="{y}" {size} rx="4"/>')
        lines.append(text("number", x + (STEP - 6) / 2, y + 22, str(number), "middle"))
    return lines


def drawing() -> str:
    """The whole picture."""
    body, y = [], MARGIN
    for title, lines in PARTS:
        body.append(text("title", MARGIN, y + 12, title))
        y += 28
        for words, drawn in lines:
            body += line(y, words, drawn)
            y += HEIGHT + 10
        y += 18
    legend = (
        ("read", "read"),
        ("both", "read twice, so the pages meet"),
        ("lost", "lost"),
        ("row", "not read yet"),
    )
    x = MARGIN
    for kind, words in legend:
        body.append(f'<rect class="{kind}" x="{x}" y="{y}" width="16" height="16" rx="3"/>')
        body.append(text("text", x + 24, y + 13, words))
        x += 60 + 7 * len(words)
    height = y + 16 + MARGIN
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{ALTERNATIVE}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def main(arguments: Sequence[str]) -> None:
    """Draws to the path that is named, or to the one in docs."""
    path = Path(arguments[0]) if arguments else PICTURE
    path.write_text(drawing(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
