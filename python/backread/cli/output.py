"""Writes rows to stdout or a file: JSON lines, a table, CSV, Parquet."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from backread._files.paths import shown
from backread._files.spreadsheet import BYTE_ORDER_MARK, guarded, guards_in_words
from backread._files.unfinished import Unfinished
from backread._progress.bar import progress
from backread.cli.exits import UnreadListsError, UnusableArgumentError
from backread.cli.paths import cannot_be_written, is_there, scratch_file
from backread.cli.rows import (
    FIRST_SHOWN,
    TIMES,
    as_json,
    readable_heading,
    readable_time,
    with_user,
)
from backread.cli.spool import Spool
from backread.cli.stderr import say
from backread.cli.table_output import cell_text, print_table
from backread.cli.text import escaped, plain_lines
from backread.errors import BackreadError

if TYPE_CHECKING:
    from backread._client.listing import ArrowSource, Listing

__all__ = [
    "Csv",
    "Format",
    "destination",
    "format_of",
    "refuse_binary_on_terminal",
    "write_by_path",
    "write_item",
    "write_listing",
]

Row = Callable[[Any], list[object]]
"""Makes the cells of one row."""


@dataclass(frozen=True, slots=True)
class Csv:
    """How CSV is written."""

    raw: bool = False
    """Writes texts unchanged, even if a spreadsheet takes them for formulas."""
    excel: bool = False
    """Begins with a byte order mark."""


class Format(StrEnum):
    """The values of ``--format``."""

    JSON = "json"
    JSONL = "jsonl"
    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
}


FOREIGN = {
    *(".xlsx", ".xls", ".ods", ".gz", ".zip", ".zst", ".bz2", ".xz", ".tsv", ".feather", ".arrow"),
    *(".avro", ".orc", ".db", ".duckdb", ".sqlite", ".xml", ".html", ".pdf", ".yaml", ".yml"),
}
"""Suffixes of formats that backread does not write."""


LINES = 2**20
"""The bytes of a file that are written at once, up to the end of a line."""


def format_of(given: Format | None, output: Path | None) -> Format:
    """The requested format, else the one of the file's suffix, else JSON lines.

    ``jsonl`` is another name of ``json``. Raises `UnusableArgumentError` if the two differ, or if
    an existing file of another suffix would be replaced and no format was requested.
    """
    if given is Format.JSONL:
        given = Format.JSON
    suffix = "" if output is None else output.suffix.lower()
    meant = SUFFIXES.get(suffix)
    if given is None and suffix == ".delta":
        from backread.mirror.export.target import NO_DELTA

        raise UnusableArgumentError(f"--output: {NO_DELTA}")
    if given is None and suffix in FOREIGN:
        raise UnusableArgumentError(
            f"backread does not write {suffix} files; name --output with one of "
            f"{', '.join(SUFFIXES)}, or add --format"
        )
    if given is None and meant is None and suffix and output is not None and is_there(output):
        raise UnusableArgumentError(
            f"--output {shown(output)} exists, and backread does not write {suffix} files; name "
            "another file, or add --format to replace it"
        )
    if given is not None and meant is not None and given is not meant:
        raise UnusableArgumentError(
            f"--format {given} and the name of --output {output} do not agree; leave --format out, "
            f"or use a file name without {output.suffix if output else ''}"
        )
    return given or meant or Format.JSON


def write_item(item: object) -> None:
    """One JSON object as sent, on one line."""
    with destination(None) as stream:
        stream.write(_encoded(as_json(item) + "\n"))


def write_listing(
    listing: Listing[Any],
    shape: Format,
    output: Path | None,
    columns: Sequence[str],
    row: Row,
    csv_options: Csv,
    *,
    users_named: bool = False,
) -> None:
    """Writes all rows of the listing in this format, in bounded memory.

    With ``users_named`` a message's JSON has its user in front of what was sent. Progress goes to
    stderr if that is a terminal, unless the rows go to the terminal while they are read.
    """
    if output is not None or not sys.stdout.isatty() or shape is Format.TABLE:
        listing = progress(listing)
    if shape is Format.PARQUET:
        if output is None and sys.stdout.isatty():
            raise UnusableArgumentError(
                "--format parquet is not text: name a file with --output FILE"
            )
        with destination(output) as stream:
            _write_parquet(listing, stream)
        _say_what_is_missing(listing)
        return
    as_sent = 0
    with destination(output) as stream:
        if shape is Format.JSON:
            as_sent = _write_json(listing, stream, users_named)
        elif shape is Format.CSV:
            _write_csv(listing, stream, columns, row, csv_options)
        else:
            _write_table(listing, stream, columns, row)
    _say_what_is_missing(listing, as_sent)


def _say_what_is_missing(listing: Listing[Any], as_sent: int = 0) -> None:
    """Reports rows that are or may be missing.

    ``as_sent`` rows without an integer id were written as sent.
    """
    from backread._client.listing import stopped_by_caller, users_refused, users_without_id

    report = listing.report
    nameless = users_without_id(report)
    left_out = report.unreadable_rows - as_sent
    if left_out > 0:
        rows = "1 row is" if left_out == 1 else f"{left_out:,} rows are"
        say(f"{rows} left out: {report.reason}")
    refused = users_refused(report.reason)
    if report.unread_users or nameless or refused:
        then = "all other lists were read"
        if report.unread_users:
            then += "; try again later"
        raise UnreadListsError(report.unread_users, nameless, refused, then)
    if left_out <= 0 and report.certificate == "uncertified" and not stopped_by_caller(report):
        say(f"the list is not proved complete: {report.reason}")


def _write_json(listing: Listing[Any], stream: IO[bytes], users_named: bool) -> int:
    """Returns the number of rows without an integer id, which are also written as sent."""
    as_sent = 0
    for user_id, page in listing._pages_of():
        as_sent += sum(not _has_id(item) for item in page.items)
        items = (with_user(user_id, item) for item in page.items) if users_named else page.items
        stream.write(_encoded("".join(as_json(item) + "\n" for item in items)))
        stream.flush()
    return as_sent


def _has_id(item: object) -> bool:
    found = item.get("id") if isinstance(item, dict) else None
    return type(found) is int and -(2**63) <= found < 2**63


def _write_csv(
    listing: Listing[Any], stream: IO[bytes], columns: Sequence[str], row: Row, options: Csv
) -> None:
    on_terminal = stream is sys.stdout.buffer and sys.stdout.isatty()
    guards = 0

    def tell() -> None:
        nonlocal guards
        guards += 1

    def cell(value: object) -> str:
        text = cell_text(value)
        if value is None or isinstance(value, (bool, int, float)):
            return text
        if isinstance(value, str):
            if not options.raw:
                text = guarded(text, tell)
            if on_terminal:
                text = plain_lines(text)
        # Quoted even without a comma: some spreadsheets split at semicolons and tabs, too.
        doubled = text.replace('"', '""')
        return f'"{doubled}"'

    mark = BYTE_ORDER_MARK if options.excel else ""
    stream.write(_encoded(f"{mark}{','.join(columns)}\n"))
    for _, page in listing._pages_of():
        lines = (",".join(map(cell, row(item))) + "\n" for item in page.items)
        stream.write(_encoded("".join(lines)))
        stream.flush()
    if guards:
        say(guards_in_words(guards))


def _write_table(
    listing: Listing[Any], stream: IO[bytes], columns: Sequence[str], row: Row
) -> None:
    with closing(Spool(len(columns))) as rows:
        for _, page in listing._pages_of():
            for item in page.items:
                rows.append(
                    [
                        readable_time(value) if name in TIMES and isinstance(value, str) else value
                        for name, value in zip(columns, row(item), strict=True)
                    ]
                )
        # Columns without any value are left out.
        shown = [readable_heading(columns[at]) for at in rows.used]
        order = [readable_heading(name) for name in FIRST_SHOWN]
        if stream is sys.stdout.buffer and sys.stdout.isatty():
            print_table(shown, rows, sys.stdout, order=order)
            return
        text = io.TextIOWrapper(stream, "utf-8", "replace", newline="\n")
        try:
            print_table(shown, rows, text, order=order)
        finally:
            # Otherwise closing the wrapper would close the stream.
            text.detach()


def _write_parquet(listing: Listing[Any], stream: IO[bytes]) -> None:
    from backread._client.listing import ArrowSource
    from backread._interruptible import run_interruptibly
    from backread.mirror.store.engine import connect, quoted

    path = scratch_file("parquet")
    with _duckdb_errors(path.parent):
        connection = connect(None)
        source = ArrowSource(listing)

        def interrupt() -> None:
            source.stop()
            connection.interrupt()

        def copy(source: ArrowSource) -> None:
            # A capsule: DuckDB would request several streams of an object, each of them a walk.
            connection.register("rows_read", source.__arrow_c_stream__())
            connection.execute(
                f"COPY (FROM rows_read) TO {quoted(str(path))} (FORMAT parquet, COMPRESSION zstd)"
            ).fetchall()

        try:
            run_interruptibly(lambda: source.read(copy), interrupt)
        finally:
            connection.unregister("rows_read")
            connection.close()
    with path.open("rb") as file:
        shutil.copyfileobj(file, stream)
    path.unlink()


@contextmanager
def _duckdb_errors(folder: Path) -> Iterator[None]:
    """Turns DuckDB's write errors into one line that says what to do."""
    from backread.mirror.store.engine import load_duckdb

    duckdb = load_duckdb()
    try:
        yield
    except duckdb.Error as error:
        raise UnusableArgumentError(
            f"the Parquet file could not be made in {folder.parent}: {error}; free some space "
            "there, or set TMPDIR to another folder"
        ) from None


@contextmanager
def destination(output: Path | None) -> Iterator[IO[bytes]]:
    """stdout, or a file that gets its name only once it is complete."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with Unfinished(output) as unfinished:
            yield unfinished.file
    except OSError as error:
        # Network errors are also OSErrors; their messages say what to do.
        if isinstance(error, BackreadError):
            raise
        raise cannot_be_written("--output", output, error) from None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def refuse_binary_on_terminal(shape: Format, output: Path | None) -> None:
    """Raises `UnusableArgumentError` for Parquet without a file."""
    if shape is Format.PARQUET and output is None and sys.stdout.isatty():
        raise UnusableArgumentError("--format parquet is not text: name a file with --output FILE")


def write_by_path(
    write: Callable[[Path], None], shape: Format, output: Path | None, what: str
) -> None:
    """Calls ``write`` with a path, and copies the file to stdout or to ``output``.

    Args:
        write: Makes the file.
        shape: Its format: JSON lines, CSV or Parquet.
        output: A file; None for stdout.
        what: What is written, for errors.
    """
    from backread.mirror.store.engine import disk_is_full, load_duckdb

    path = scratch_file(shape)
    try:
        write(path)
        with destination(output) as stream, path.open("rb") as file:
            _copy(file, stream, shape)
    except load_duckdb().Error as error:
        then = ""
        if disk_is_full(str(error)):
            then = "; free some space there, or set TMPDIR to another folder"
        raise UnusableArgumentError(
            f"{what} could not be written to {path.parent}: {error}{then}"
        ) from None
    finally:
        path.unlink(missing_ok=True)


def _copy(file: IO[bytes], stream: IO[bytes], shape: Format) -> None:
    on_terminal = stream is sys.stdout.buffer and sys.stdout.isatty()
    if shape is Format.PARQUET or (shape is Format.CSV and not on_terminal):
        shutil.copyfileobj(file, stream)
        return
    clean = escaped if shape is Format.JSON else plain_lines
    while lines := file.readlines(LINES):
        stream.write(clean(b"".join(lines).decode()).encode())
