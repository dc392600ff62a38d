"""What goes to stdout or into a file: JSON lines, a table, CSV, Parquet."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from backread.cli.exits import UnusableArgumentError
from backread.cli.rows import as_json

if TYPE_CHECKING:
    from backread._listing import Listing

__all__ = ["Format", "print_table", "write_item", "write_listing"]

Row = Callable[[dict[str, Any]], list[object]]


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
            _write_csv(listing, stream, columns, row)
        else:
            _write_table(listing, stream, columns, row)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], file: IO[str]) -> None:
    """A plain table; numbers are right-aligned by the look of the first row."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for position, name in enumerate(columns):
        first = rows[0][position] if rows else None
        number = isinstance(first, (int, float)) and not isinstance(first, bool)
        table.add_column(name, justify="right" if number else "left", overflow="ellipsis")
    for each in rows:
        # Text, because a message may hold what looks like markup.
        table.add_row(*(Text(" ".join(_cell(value).split())) for value in each))
    console = Console(file=file, width=None if file.isatty() else _width(columns, rows))
    console.print(table)


def _width(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> int:
    """Wide enough for everything: who reads a pipe or a file wants no cell cut short."""
    widest = [
        max([len(name), *(2 * len(_cell(row[at])) for row in rows)])
        for at, name in enumerate(columns)
    ]
    return sum(widest) + 2 * len(columns) + 1


def _write_json(listing: Listing[Any], stream: IO[bytes]) -> None:
    for page in listing.pages():
        stream.write(_encoded("".join(as_json(item) + "\n" for item in page.items)))
        stream.flush()


def _write_csv(listing: Listing[Any], stream: IO[bytes], columns: Sequence[str], row: Row) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for page in listing.pages():
        writer.writerows([_cell(value) for value in row(item)] for item in page.items)
        stream.write(_encoded(text.getvalue()))
        stream.flush()
        text.seek(0)
        text.truncate()
    stream.write(_encoded(text.getvalue()))


def _write_table(
    listing: Listing[Any], stream: IO[bytes], columns: Sequence[str], row: Row
) -> None:
    rows = [row(item) for item in listing]
    # A column without a value in any row says nothing and takes room.
    kept = [at for at in range(len(columns)) if any(row[at] is not None for row in rows)]
    shown = [[row[at] for at in kept] for row in rows]
    if stream is sys.stdout.buffer:
        print_table([columns[at] for at in kept], shown, sys.stdout)
        return
    text = io.StringIO()
    print_table([columns[at] for at in kept], shown, text)
    stream.write(_encoded(text.getvalue()))


def _write_parquet(listing: Listing[Any], stream: IO[bytes]) -> None:
    from backread._listing import ArrowSource
    from backread.mirror.engine import connect, quoted

    with tempfile.TemporaryDirectory(prefix="backread-") as folder:
        path = Path(folder) / "rows.parquet"
        connection = connect(None)

        def copy(source: ArrowSource) -> None:
            # The capsule itself: DuckDB asks an object for several streams, each of them a walk.
            connection.register("rows_read", source.__arrow_c_stream__())
            connection.execute(
                f"COPY (FROM rows_read) TO {quoted(str(path))} (FORMAT parquet, COMPRESSION zstd)"
            ).fetchall()

        try:
            ArrowSource(listing).read(copy)
        finally:
            connection.unregister("rows_read")
            connection.close()
        with path.open("rb") as file:
            shutil.copyfileobj(file, stream)


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
    finally:
        unfinished.unlink(missing_ok=True)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return as_json(value) if isinstance(value, (list, dict)) else str(value)
