"""Plain tables, for a pipe, a file or a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO

from backread.cli.rows import as_json
from backread.cli.text import plain

__all__ = ["cell_text", "print_records", "print_table"]

READABLE = 10
"""The terminal cells below which a text says nothing."""

GAP = 2
"""The blanks between two columns."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], file: IO[str]) -> None:
    """A plain table; numbers are right-aligned by the look of the first row.

    ``rows`` is iterated twice, and never held. A pipe or a file gets every cell whole. On a
    terminal a row is one line: long cells are cut short with an ellipsis, and columns that do not
    fit even so are left out and counted.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    widths = [cell_len(name) for name in columns]
    numbers = [False] * len(columns)
    for place, row in enumerate(rows):
        if place == 0:
            numbers = [_is_number(value) for value in row]
        widths = [
            max(width, cell_len(one_line(cell_text(value))))
            for width, value in zip(widths, row, strict=True)
        ]
    console = Console(file=file)
    if file.isatty():
        least = [
            width if number else min(width, READABLE)
            for width, number in zip(widths, numbers, strict=True)
        ]
        widths = _fitted(widths, least, console.width)
    # Captured, because rich has its own answer to a closed pipe.
    with console.capture() as drawn:
        console.print(Text(_line(columns, widths, numbers), "bold"), soft_wrap=True)
    file.write(drawn.get())
    for row in rows:
        file.write(_line([one_line(cell_text(value)) for value in row], widths, numbers) + "\n")
    if left_out := len(columns) - len(widths):
        file.write(
            f"{left_out} more column{'s' if left_out > 1 else ''}; pipe it through less -S to see "
            "all of them\n"
        )


def print_records(columns: Sequence[str], rows: Sequence[Sequence[object]], file: IO[str]) -> None:
    """A plain table, or on a terminal that is too narrow for it a block of lines for each row."""
    from rich.cells import cell_len
    from rich.console import Console

    texts = [[one_line(cell_text(value)) for value in each] for each in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *texts, strict=True)]
    if not file.isatty() or sum(widths) + GAP * (len(widths) - 1) <= Console(file=file).width:
        print_table(columns, rows, file)
        return
    blocks = (
        "".join(f"{name}: {text}".rstrip() + "\n" for name, text in zip(columns, each, strict=True))
        for each in texts
    )
    file.write("\n".join(blocks))


def _fitted(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths of the first columns, as many as fit, none below its least and one at least."""
    shown = len(widths)
    while shown > 1 and sum(least[:shown]) + GAP * (shown - 1) > room:
        shown -= 1
    for longest in range(max(widths[:shown], default=0), READABLE, -1):
        fitted = [
            max(low, min(width, longest))
            for width, low in zip(widths[:shown], least[:shown], strict=True)
        ]
        if sum(fitted) + GAP * (shown - 1) <= room:
            return fitted
    return list(least[:shown])


def _line(texts: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    """The first texts side by side, as many as there are widths, each cut to its width."""
    from rich.cells import cell_len, set_cell_size

    cells = []
    for text, width, number in zip(texts, widths, numbers, strict=False):
        room = width - cell_len(text)
        if room < 0:
            cells.append(set_cell_size(text, width - 1) + "…")
        else:
            cells.append(" " * room + text if number else text + " " * room)
    # The blanks that make a cell as wide as the longest of its column say nothing at the end.
    return (" " * GAP).join(cells).rstrip()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def one_line(text: str) -> str:
    """The text without line breaks, and without what a terminal would take for a command."""
    return plain(" ".join(text.split()))


def cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return as_json(value) if isinstance(value, (list, dict)) else str(value)
