"""Tables, drawn by Rich, for a terminal, a pipe or a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any

from backread._display.words import yes_or_no
from backread.cli.rows import as_json
from backread.cli.text import console_for, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


MOST_ROWS = 1_000
"""The rows of a table; further ones follow as lines with its widths."""

ENOUGH = 12
"""The terminal cells that a text gets before wider ones get more."""

GAP = 2
"""The blanks between two columns."""

UTC = " (UTC)"
"""How the heading of a column of times ends."""


def write_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    stream: IO[str],
    *,
    numbers: Sequence[bool] | None = None,
    first: Sequence[str] = (),
    wrap: bool = False,
    pager: bool = False,
) -> int:
    """Writes a table and returns the number of its rows.

    A pipe or a file gets every cell whole. On a terminal long cells are cut or wrapped, and columns
    that do not fit even so are left out and named. Columns without any value are left out, unless
    there are more rows than a table holds, since a later one might have a value.

    Args:
        columns: Their names.
        rows: Their values; a `Text` is drawn as it is.
        stream: Where the table goes.
        numbers: Which columns are right-aligned; by default those with a number in the first row.
        first: The columns to show first, if not all of them fit; the first of them gets half of
            the terminal's width.
        wrap: Wraps the texts of a terminal instead of cutting them.
        pager: Shows a table that does not fit on the terminal in the user's pager.
    """
    console = console_for(stream)
    names = [_one_line(each) for each in columns]
    rest = iter(rows)
    held = list(islice(rest, MOST_ROWS))
    following = next(rest, None)
    aligned = numbers or [
        all(row[at] in (None, "") or _is_number(row[at]) for row in held)
        and any(_is_number(row[at]) for row in held)
        for at in range(len(names))
    ]
    texts = [[_text(value) for value in row] for row in held]
    widths = [
        max(len_of, *(each[at].cell_len for each in texts)) if texts else len_of
        for at, len_of in enumerate(_text(name).cell_len for name in names)
    ]
    shown = [
        at
        for at in range(len(names))
        if following is not None or not held or any(row[at] not in (None, "") for row in held)
    ]
    left_out: list[int] = []
    if stream.isatty():
        wanted = [at for name in first for at in shown if names[at] == name]
        half = wanted[:1]
        wanted += [at for at in shown if at not in wanted]
        # Half a number or half a time says something else.
        fixed = [number or name.endswith(UTC) for number, name in zip(aligned, names, strict=True)]
        least = [
            width if number_or_time else min(width, console.width // 2 if at in half else ENOUGH)
            for at, (width, number_or_time) in enumerate(zip(widths, fixed, strict=True))
        ]
        fitted = _fitted(widths, least, wanted, console.width)
        left_out = [at for at in shown if at not in fitted]
        shown = sorted(fitted)
        widths = [fitted.get(at, 0) for at in range(len(names))]
    table = _table([(names[at], widths[at], aligned[at]) for at in shown], wrap)
    for row in texts:
        table.add_row(*(row[at] for at in shown))
    with open_pager(console, pager and following is None):
        _print(table, console, stream)
        if left_out:
            more = f"{len(left_out)} more column{'s' if len(left_out) > 1 else ''}"
            listed = ", ".join(names[at] for at in left_out)
            console.print(
                plain(f"{more}: {listed}; --format jsonl shows them"), style="dim", soft_wrap=True
            )
    count = len(held)
    for values in chain([] if following is None else [following], rest):
        cells = [(_text(values[at]).plain, widths[at], aligned[at]) for at in shown]
        stream.write(_line(cells, stream.isatty()) + "\n")
        count += 1
    return count


def open_pager(console: Console, wanted: bool) -> Any:
    """Rich's pager on a terminal that wants one, else a context that changes nothing."""
    import os
    from contextlib import nullcontext

    if not wanted or not console.file.isatty() or os.environ.get("TERM") == "dumb":
        return nullcontext()
    # As git does: what fits on the terminal is only printed, and colours come through.
    os.environ.setdefault("LESS", "FRX")
    os.environ.setdefault("LESSCHARSET", "utf-8")
    return console.pager(styles=True)


def _table(columns: Sequence[tuple[str, int, bool]], wrap: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name, width, number in columns:
        table.add_column(
            Text(name),
            width=width,
            no_wrap=number or not wrap,
            overflow="fold" if wrap else "ellipsis",
            justify="right" if number else "left",
        )
    return table


def _print(table: Table, console: Console, stream: IO[str]) -> None:
    """Prints a table without the blanks that end its lines, which a terminal would wrap."""
    room = max(console.width, sum(each.width or 0 for each in table.columns))
    with console.capture() as drawn:
        console.print(table, width=room, crop=False)
    text = "".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines())
    if stream.isatty():
        console.out(text, end="", highlight=False)
    else:
        stream.write(text)


def _fitted(
    widths: Sequence[int], least: Sequence[int], wanted: Sequence[int], room: int
) -> dict[int, int]:
    """The widths of the columns that fit, at least one, in the order in which they are wanted."""
    taken: dict[int, int] = {}
    left = room
    for at in wanted:
        cost = least[at] + GAP * bool(taken)
        if cost <= left:
            left -= cost
            taken[at] = least[at]
        elif not taken:
            return {at: least[at]}
    for at in sorted(taken, key=lambda at: widths[at]):
        more = min(widths[at] - taken[at], left)
        taken[at] += more
        left -= more
    return taken


def _line(cells: Sequence[tuple[str, int, bool]], cut: bool) -> str:
    """The texts side by side, each with its width, and whether it is right-aligned."""
    from rich.cells import cell_len, set_cell_size

    texts = []
    for text, width, number in cells:
        blanks = " " * (width - cell_len(text))
        if cut and cell_len(text) > width:
            texts.append(set_cell_size(text, width - 1) + "…")
        else:
            texts.append(blanks + text if number else text + blanks)
    return (" " * GAP).join(texts).rstrip()


def _text(value: object) -> Text:
    from rich.text import Text

    if isinstance(value, Text):
        return value
    return Text(_one_line(yes_or_no(value) if isinstance(value, bool) else cell_text(value)))


def _one_line(text: str) -> str:
    """The text without line breaks, and without what a terminal would take for a command."""
    return plain(" ".join(text.split()))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def cell_text(value: object) -> str:
    """A value as programs read it, in CSV."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return as_json(value) if isinstance(value, (list, dict)) else str(value)
