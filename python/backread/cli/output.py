"""What goes to stdout or into a file: JSON lines, a table, CSV, Parquet."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from backread.cli.exits import UnusableArgumentError, is_full
from backread.cli.rows import as_json
from backread.cli.stderr import say
from backread.cli.text import guarded, plain
from backread.errors import BackreadError

if TYPE_CHECKING:
    from backread._listing import ArrowSource, Listing

__all__ = ["Csv", "Format", "print_records", "print_table", "write_item", "write_listing"]

READABLE = 10
"""The terminal cells below which a text says nothing."""

GAP = 2
"""The blanks between two columns."""

BYTE_ORDER_MARK = "\ufeff"
"""By which Excel knows UTF-8."""

Row = Callable[[dict[str, Any]], list[object]]


@dataclass(frozen=True, slots=True)
class Csv:
    """How CSV is written."""

    raw: bool = False
    """With texts as they are, formulas too."""
    excel: bool = False
    """With a byte order mark."""


class Format(StrEnum):
    """The values of ``--format``."""

    JSON = "json"
    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


def write_item(item: object) -> None:
    """One JSON object as sent, on one line."""
    with _destination(None) as stream:
        stream.write(_encoded(as_json(item) + "\n"))


def write_listing(
    listing: Listing[Any],
    shape: Format,
    output: Path | None,
    columns: Sequence[str],
    row: Row,
    csv_options: Csv = Csv(),
) -> None:
    """All rows of the listing in the shape that was asked; a table is held in memory first."""
    if shape is Format.PARQUET:
        if output is None and sys.stdout.isatty():
            raise UnusableArgumentError(
                "--format parquet is not text: name a file with --output FILE"
            )
        with _destination(output) as stream:
            _write_parquet(listing, stream)
        return
    with _destination(output) as stream:
        if shape is Format.JSON:
            _write_json(listing, stream)
        elif shape is Format.CSV:
            _write_csv(listing, stream, columns, row, csv_options)
        else:
            _write_table(listing, stream, columns, row)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], file: IO[str]) -> None:
    """A plain table; numbers are right-aligned by the look of the first row.

    A pipe or a file gets every cell whole. On a terminal a row is one line: long cells are cut
    short with an ellipsis, and columns that do not fit even so are left out and counted.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=file)
    # Text, because a message may hold what looks like markup.
    cells = [[Text(_one_line(_cell(value))) for value in each] for each in rows]
    heads = [Text(name, "bold") for name in columns]
    numbers = [_is_number(rows[0][at]) if rows else False for at in range(len(columns))]
    widths = [max(each.cell_len for each in column) for column in zip(heads, *cells, strict=True)]
    if file.isatty():
        least = [
            width if number else min(width, READABLE)
            for width, number in zip(widths, numbers, strict=True)
        ]
        widths = _fitted(widths, least, console.width)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_edge=False)
    for head, width, number in zip(heads, widths, numbers, strict=False):
        table.add_column(
            head,
            justify="right" if number else "left",
            width=width,
            no_wrap=True,
            overflow="ellipsis",
        )
    for each in cells:
        table.add_row(*each[: len(widths)])
    console.width = max(console.width, sum(widths) + GAP * len(widths))
    # Captured, because rich has its own answer to a closed pipe.
    with console.capture() as drawn:
        console.print(table)
    # The blanks that make a cell as wide as the longest of its column say nothing at the end.
    file.write("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))
    if left_out := len(columns) - len(widths):
        file.write(
            f"{left_out} more column{'s' if left_out > 1 else ''}; pipe it through less -S to see "
            "all of them\n"
        )


def print_records(columns: Sequence[str], rows: Sequence[Sequence[object]], file: IO[str]) -> None:
    """A plain table, or on a terminal that is too narrow for it a block of lines for each row."""
    from rich.cells import cell_len
    from rich.console import Console

    texts = [[_one_line(_cell(value)) for value in each] for each in rows]
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


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _write_json(listing: Listing[Any], stream: IO[bytes]) -> None:
    for page in listing.pages():
        stream.write(_encoded("".join(as_json(item) + "\n" for item in page.items)))
        stream.flush()


class _Lines:
    """Rows of CSV that end in LF, as lines of a pipe do."""

    def __init__(self) -> None:
        self._rows: list[str] = []

    def write(self, row: str) -> None:
        self._rows.append(f"{row[:-2]}\n" if row.endswith("\r\n") else row)

    def take(self) -> str:
        text = "".join(self._rows)
        self._rows.clear()
        return text


def _write_csv(
    listing: Listing[Any], stream: IO[bytes], columns: Sequence[str], row: Row, options: Csv
) -> None:
    on_terminal = stream is sys.stdout.buffer and sys.stdout.isatty()
    guards = 0

    def tell() -> None:
        nonlocal guards
        guards += 1

    def cell(value: object) -> str:
        text = _cell(value)
        if isinstance(value, str):
            if not options.raw:
                text = guarded(text, tell)
            if on_terminal:
                text = "\n".join(map(plain, text.split("\n")))
        return text

    text = _Lines()
    if options.excel:
        text.write(BYTE_ORDER_MARK)
    # Cells with a character of the line's end are quoted, and only those: so with a lone CR too.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    for page in listing.pages():
        writer.writerows([cell(value) for value in row(item)] for item in page.items)
        stream.write(_encoded(text.take()))
        stream.flush()
    stream.write(_encoded(text.take()))
    if guards:
        cells = "1 cell begins" if guards == 1 else f"{guards:,} cells begin"
        say(
            f"{cells} with an apostrophe, so that no spreadsheet takes them for a formula; "
            "--raw-csv writes them as they are"
        )


def _write_table(
    listing: Listing[Any], stream: IO[bytes], columns: Sequence[str], row: Row
) -> None:
    rows = [row(item) for item in listing]
    # A column without a value in any row says nothing and takes room.
    kept = [at for at in range(len(columns)) if any(row[at] is not None for row in rows)]
    shown = [[row[at] for at in kept] for row in rows]
    if stream is sys.stdout.buffer and sys.stdout.isatty():
        print_table([columns[at] for at in kept], shown, sys.stdout)
        return
    text = io.StringIO()
    print_table([columns[at] for at in kept], shown, text)
    stream.write(_encoded(text.getvalue()))


def _write_parquet(listing: Listing[Any], stream: IO[bytes]) -> None:
    from backread._listing import ArrowSource
    from backread.mirror.engine import connect, quoted

    with tempfile.TemporaryDirectory(prefix="backread-") as folder, _duckdb_errors(folder):
        path = Path(folder) / "rows.parquet"
        connection = connect(None)

        def copy(source: ArrowSource) -> None:
            # The capsule itself: DuckDB asks an object for several streams, each of them a walk.
            connection.register("rows_read", source.__arrow_c_stream__())
            connection.execute(
                f"COPY (FROM rows_read) TO {quoted(str(path))} (FORMAT parquet, COMPRESSION zstd)"
            ).fetchall()

        try:
            _read_beside(ArrowSource(listing), copy, connection.interrupt)
        finally:
            connection.unregister("rows_read")
            connection.close()
        with path.open("rb") as file:
            shutil.copyfileobj(file, stream)


def _read_beside(
    source: ArrowSource, copy: Callable[[ArrowSource], None], interrupt: Callable[[], None]
) -> None:
    # In a thread of its own: DuckDB in the main one holds Ctrl-C up until the next page has come.
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(source.read, copy)
        try:
            # In slices, because Ctrl-C does not end a wait on Windows.
            while not wait([reading], 0.2).done:
                pass
        except BaseException:
            source.stop()
            interrupt()
            raise
    reading.result()


@contextmanager
def _duckdb_errors(folder: str) -> Iterator[None]:
    """What DuckDB could not write, as one line that says what to do."""
    from backread.mirror.engine import load_duckdb

    duckdb = load_duckdb()
    try:
        yield
    except duckdb.Error as error:
        raise UnusableArgumentError(
            f"the Parquet file could not be made in {folder}: {error}; free some space there, or "
            "set TMPDIR to another folder"
        ) from None


@contextmanager
def _destination(output: Path | None) -> Iterator[IO[bytes]]:
    """stdout, or a file that takes its name only when all of it is written."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    unfinished = output.with_name(f".{output.name}.{os.getpid()}.unfinished")
    try:
        file = unfinished.open("wb")
    except OSError as error:
        raise UnusableArgumentError(
            f"--output {output} cannot be written: {error.strerror}; name another file"
        ) from None
    try:
        with file:
            yield file
        unfinished.replace(output)
    except OSError as error:
        # The network's errors are of this kind too, and say themselves what to do.
        if isinstance(error, BackreadError):
            raise
        remedy = "free some space, or name another file" if is_full(error) else "name another file"
        raise UnusableArgumentError(
            f"--output {output} cannot be written: {error.strerror}; {remedy}"
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _one_line(text: str) -> str:
    """The text without line breaks, and without what a terminal would take for a command."""
    return plain(" ".join(text.split()))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return as_json(value) if isinstance(value, (list, dict)) else str(value)
