"""Plain tables, for a pipe, a file or a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import IO

from backread._display.words import yes_or_no
from backread.cli.color import ink_for
from backread.cli.rows import as_json
from backread.cli.text import plain

__all__ = ["cell_text", "print_records", "print_table", "table_lines"]

READABLE = 10
"""The terminal cells below which a text says nothing."""

ENOUGH = 20
"""The terminal cells that a text gets next to the main column."""

WIDEST = 100
"""The most cells that a column is padded to in a pipe or a file.

One long message would otherwise make each row as long as itself.
"""

GAP = 2
"""The blanks between two columns."""

UTC = " (UTC)"
"""How the heading of a column of times ends."""

MAIN = "body"
"""The column that gets at least half of a terminal's width."""


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    file: IO[str],
    *,
    numbers: Sequence[bool] | None = None,
    order: Sequence[str] = (),
) -> None:
    """Writes a plain table; see `table_lines`."""
    for line in table_lines(columns, rows, file, numbers=numbers, order=order):
        file.write(f"{line}\n")


def table_lines(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    file: IO[str],
    *,
    numbers: Sequence[bool] | None = None,
    order: Sequence[str] = (),
) -> Iterable[str]:
    """The lines of a plain table.

    A pipe or a file gets every cell whole; the row of a cell of more than 100 terminal cells is not
    aligned. On a terminal a row is one line: long cells are cut
    short with an ellipsis, and columns that do not fit even so are left out and named.

    Args:
        columns: Their names.
        rows: Iterated twice, and never held.
        file: Where the lines go.
        numbers: Which columns are right-aligned; by default those with a number in the first row.
        order: The columns to show first next to a body, if not all of them fit.
    """
    from rich.cells import cell_len

    # A query may name its columns in any way.
    columns = [one_line(name) for name in columns]
    widths = [cell_len(name) for name in columns]
    found = [False] * len(columns)
    for place, row in enumerate(rows):
        if place == 0:
            found = [_is_number(value) for value in row]
        widths = [
            max(width, cell_len(one_line(table_text(value))))
            for width, value in zip(widths, row, strict=True)
        ]
    aligned = found if numbers is None else numbers
    shown = list(range(len(columns)))
    room = get_terminal_size().columns
    on_terminal = file.isatty()
    if on_terminal:
        shown, widths = _fitted(columns, widths, aligned, order, room)
    else:
        widths = [min(width, WIDEST) for width in widths]
    kept = [aligned[at] for at in shown]
    yield ink_for(file).bold(_line([columns[at] for at in shown], widths, kept, cut=on_terminal))
    for row in rows:
        texts = [one_line(table_text(row[at])) for at in shown]
        yield _line(texts, widths, kept, cut=on_terminal)
    left_out = [name for at, name in enumerate(columns) if at not in shown]
    if left_out:
        more = f"{len(left_out)} more column{'s' if len(left_out) > 1 else ''}"
        text = f"{more} ({', '.join(left_out)}): pipe it through less -S to see all of them"
        yield fill(plain(text), max(room, READABLE))


def print_records(columns: Sequence[str], rows: Sequence[Sequence[object]], file: IO[str]) -> None:
    """A plain table, or on a terminal that is too narrow for it a block of lines for each row."""
    from rich.cells import cell_len

    texts = [[one_line(table_text(value)) for value in each] for each in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *texts, strict=True)]
    room = get_terminal_size().columns
    if not file.isatty() or sum(widths) + GAP * (len(widths) - 1) <= room:
        print_table(columns, rows, file)
        return
    for place, each in enumerate(texts):
        file.write("\n" if place else "")
        for name, text in zip(columns, each, strict=True):
            # What a run does not have says nothing here.
            if text:
                file.write(fill(f"{name}: {text}", max(room, READABLE), subsequent_indent="  "))
                file.write("\n")


def _fitted(
    columns: Sequence[str],
    widths: Sequence[int],
    numbers: Sequence[bool],
    order: Sequence[str],
    room: int,
) -> tuple[list[int], list[int]]:
    """The places of the columns that fit, and their widths."""
    if sum(widths) + GAP * (len(widths) - 1) <= room:
        return list(range(len(columns))), list(widths)
    if MAIN in columns:
        return _beside_main(columns, widths, numbers, order, room)
    # Half a number or half a time says something else.
    least = [
        width if number or name.endswith(UTC) else min(width, READABLE)
        for name, width, number in zip(columns, widths, numbers, strict=True)
    ]
    fitted = _first_columns(widths, least, room)
    return list(range(len(fitted))), fitted


def _beside_main(
    columns: Sequence[str],
    widths: Sequence[int],
    numbers: Sequence[bool],
    order: Sequence[str],
    room: int,
) -> tuple[list[int], list[int]]:
    main = columns.index(MAIN)
    most = room - min(widths[main], (room + 1) // 2)
    wanted = [columns.index(name) for name in order if name in columns]
    wanted += [at for at in range(len(columns)) if at not in wanted]
    taken: dict[int, int] = {}
    for at in wanted:
        width = widths[at] if numbers[at] else min(widths[at], ENOUGH)
        if at != main and sum(taken.values()) + GAP * len(taken) + width + GAP <= most:
            taken[at] = width
    left = room - sum(taken.values()) - GAP * len(taken)
    taken[main] = max(min(widths[main], left), 1)
    shown = sorted(taken)
    return shown, [taken[at] for at in shown]


def _first_columns(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
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


def _line(
    texts: Sequence[str], widths: Sequence[int], numbers: Sequence[bool], *, cut: bool
) -> str:
    """The texts side by side, each padded to its width; with ``cut`` a longer one is cut to it."""
    from rich.cells import cell_len, set_cell_size

    cells = []
    for text, width, number in zip(texts, widths, numbers, strict=True):
        room = width - cell_len(text)
        if cut and room < 0:
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


def table_text(value: object) -> str:
    """A value as people read it."""
    return yes_or_no(value) if isinstance(value, bool) else cell_text(value)


def cell_text(value: object) -> str:
    """A value as programs read it, in CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return as_json(value) if isinstance(value, (list, dict)) else str(value)
