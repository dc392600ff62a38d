"""How rows are written: as a table, JSON, CSV or Parquet, to stdout or a file."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from backread._files.paths import shown
from backread._files.spreadsheet import BYTE_ORDER_MARK, excel_time, guarded, guards_in_words
from backread._progress.bar import progress
from backread.cli.arguments import (
    ExcelOption,
    JsonOption,
    RawOption,
    extended,
    file_to_write,
    json_wanted,
    option,
)
from backread.cli.exits import UnreadListsError, UnusableArgumentError
from backread.cli.paths import scratch_file, written
from backread.cli.rows import (
    FIRST_SHOWN,
    TIMES,
    as_json,
    readable_heading,
    readable_time,
    with_user,
)
from backread.cli.stderr import Verbosity, say
from backread.cli.table_output import cell_text, write_table
from backread.cli.text import escaped, plain_lines

if TYPE_CHECKING:
    from backread._client.listing import ArrowSource, Listing


Format = StrEnum("Format", "TABLE JSON JSONL CSV PARQUET")
"""The values of ``--format``."""


SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
}

LINES = 2**20
"""The bytes of a file that are written at once, up to the end of a line."""


@dataclass(frozen=True, slots=True)
class Target:
    """The format in which rows are written, and the target."""

    format: Format
    output: Path | None = None
    raw_csv: bool = False
    excel: bool = False

    @property
    def on_terminal(self) -> bool:
        """Whether the rows go to a terminal."""
        return self.output is None and sys.stdout.isatty()

    @property
    def is_json(self) -> bool:
        """Whether the rows are JSON, as one document or as lines."""
        return self.format in (Format.JSON, Format.JSONL)

    @classmethod
    def of(
        cls,
        given: Format | None,
        as_json: bool = False,
        output: Path | None = None,
        raw_csv: bool = False,
        excel: bool = False,
    ) -> Target:
        """The target that options name; `UnusableArgumentError` if they do not agree."""
        given = Format.JSON if json_wanted(given, as_json) else given
        found = cls(_format_of(given, output), output, raw_csv, excel)
        if (raw_csv or excel) and found.format is not Format.CSV:
            flag = "--raw-csv" if raw_csv else "--excel"
            raise UnusableArgumentError(f"{flag} needs CSV; add --format csv or --output FILE.csv")
        if found.format is Format.PARQUET and found.on_terminal:
            raise UnusableArgumentError(
                "--format parquet is not text: name a file with --output FILE"
            )
        return found


def _format_of(given: Format | None, output: Path | None) -> Format:
    """The requested format, else that of the file's suffix, else a table for people to read."""
    if output is None:
        return given or (Format.TABLE if sys.stdout.isatty() else Format.JSONL)
    suffix = output.suffix.lower()
    meant = SUFFIXES.get(suffix)
    # What has no letter is part of a date.
    if given is None and meant is None and suffix.upper() != suffix:
        raise UnusableArgumentError(
            f"backread does not write {suffix} files; name --output with one of "
            f"{', '.join(SUFFIXES)}, or add --format"
        )
    if given is not None and meant is not None and given is not meant:
        raise UnusableArgumentError(
            f"--format {given} and the name of --output {shown(output)} do not agree; leave "
            f"--format out, or use a file name without {output.suffix}"
        )
    return given or meant or Format.JSONL


FormatOption = Annotated[
    Format | None,
    typer.Option(
        help="json is one document, jsonl a line for each row.",
        show_default="that of the --output, a table on a terminal, else jsonl",
    ),
]
OutputOption = Annotated[
    Path | None, file_to_write("Write here, completely or not at all.", "--output", "-o")
]
OPTIONS = (
    option("format", FormatOption),
    option("as_json", JsonOption, False),
    option("output", OutputOption),
    option("raw_csv", RawOption, False),
    option("excel", ExcelOption, False),
)


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of its rows, and a `Target` as ``target``."""
    names = [each.name for each in OPTIONS]

    def call(**values: Any) -> None:
        target = Target.of(*(values.pop(name) for name in names))
        command(**values, target=target)

    return extended(command, call, OPTIONS, without="target")


def write_rows(
    rows: Iterable[dict[str, Any]],
    target: Target,
    columns: Sequence[str],
    cells: Callable[[dict[str, Any]], Sequence[object]] | None = None,
    **table: Any,
) -> int:
    """Writes rows of JSON values and returns their number.

    Args:
        rows: Each has the same names.
        target: Their format.
        columns: The columns of a table.
        cells: Makes a row of the table; by default the values of the columns.
        **table: Arguments of `write_table`.
    """
    count = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal count
        for count, row in enumerate(rows, start=1):  # noqa: B007
            yield row

    if target.format is Format.PARQUET:
        write_by_path(partial(_write_parquet_rows, counted()), target, "the rows")
        return count
    with destination(target.output) as stream:
        if target.is_json:
            _write_json(stream, map(as_json, counted()), target.format)
        elif target.format is Format.CSV:
            _write_csv_rows(counted(), stream, target)
        else:
            made = cells or (lambda row: [row[name] for name in columns])
            with text_stream(stream) as text:
                write_table(columns, map(made, counted()), text, **table)
    return count


def write_document(document: object, target: Target) -> None:
    """Writes one JSON value on a line."""
    with destination(target.output) as stream:
        stream.write(_encoded(as_json(document) + "\n"))


def write_listing(
    listing: Listing[Any],
    target: Target,
    columns: Sequence[str],
    row: Callable[[Any], list[object]],
    *,
    users_named: bool = False,
) -> None:
    """Writes all rows of the listing, in bounded memory.

    With ``users_named`` a message's JSON has its user in front of what was sent. Progress goes to
    stderr if that is a terminal, unless the rows go there while they are read.
    """
    if not target.on_terminal and not Verbosity.quiet:
        listing = progress(listing)
    if target.format is Format.PARQUET:
        write_by_path(partial(_write_parquet, listing), target, "the rows")
        _say_what_is_missing(listing)
        return
    as_sent = 0

    def sent() -> Iterator[str]:
        nonlocal as_sent
        for user_id, page in listing._pages_of():
            as_sent += sum(not _has_id(item) for item in page.items)
            for item in page.items:
                yield as_json(with_user(user_id, item) if users_named else item)
            yield ""

    cells = (row(item) for _, page in listing._pages_of() for item in page.items)
    with destination(target.output) as stream:
        if target.is_json:
            _write_json(stream, sent(), target.format)
        elif target.format is Format.CSV:
            _write_csv(columns, cells, stream, target)
        else:
            with text_stream(stream) as text:
                write_table(
                    [readable_heading(name) for name in columns],
                    (_readable(columns, each) for each in cells),
                    text,
                    first=[readable_heading(name) for name in FIRST_SHOWN],
                )
    _say_what_is_missing(listing, as_sent)


def _readable(columns: Sequence[str], cells: Sequence[object]) -> list[object]:
    return [
        readable_time(value) if name in TIMES and isinstance(value, str) else value
        for name, value in zip(columns, cells, strict=True)
    ]


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


def _write_json(stream: IO[bytes], rows: Iterable[str], shape: Format) -> None:
    """Lines, or one array with a row on each line; an empty row ends a page that was read."""
    if shape is Format.JSONL:
        for row in rows:
            stream.write(_encoded(f"{row}\n") if row else b"")
            if not row:
                stream.flush()
        return
    before = "["
    for row in filter(None, rows):
        stream.write(_encoded(f"{before}{row}"))
        before = ",\n"
    stream.write(b"[]\n" if before == "[" else b"]\n")


def _has_id(item: object) -> bool:
    found = item.get("id") if isinstance(item, dict) else None
    return type(found) is int and -(2**63) <= found < 2**63


def _write_csv_rows(rows: Iterable[dict[str, Any]], stream: IO[bytes], target: Target) -> None:
    rest = iter(rows)
    first = next(rest, None)
    if first is not None:
        cells = (list(row.values()) for row in chain([first], rest))
        _write_csv(list(first), cells, stream, target)


def _write_csv(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    stream: IO[bytes],
    target: Target,
) -> None:
    guards = 0

    def tell() -> None:
        nonlocal guards
        guards += 1

    def cell(value: object) -> str:
        text = cell_text(value)
        if value is None or isinstance(value, (bool, int, float)):
            return text
        if isinstance(value, str):
            if not target.raw_csv:
                text = guarded(text, tell)
            if target.on_terminal:
                text = plain_lines(text)
        # Quoted even without a comma: some spreadsheets split at semicolons and tabs, too.
        doubled = text.replace('"', '""')
        return f'"{doubled}"'

    mark = BYTE_ORDER_MARK if target.excel else ""
    stream.write(_encoded(f"{mark}{','.join(columns)}\n"))
    for row in rows:
        cells = _for_excel(columns, row) if target.excel else row
        stream.write(_encoded(",".join(map(cell, cells)) + "\n"))
    if guards:
        say(guards_in_words(guards))


def _for_excel(columns: Sequence[str], cells: Sequence[object]) -> list[object]:
    return [
        excel_time(value) if name.endswith("_at") and isinstance(value, str) else value
        for name, value in zip(columns, cells, strict=True)
    ]


def _write_parquet_rows(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """DuckDB finds the types in the JSON."""
    from backread.mirror.store.engine import connect, quoted

    lines = path.with_suffix(".jsonl")
    count = 0
    with lines.open("w", encoding="utf-8") as file:
        for count, row in enumerate(rows, start=1):  # noqa: B007
            file.write(json.dumps(row, default=str) + "\n")
    if not count:
        raise UnusableArgumentError("there are no rows, so there are no columns for Parquet")
    connection = connect(None)
    try:
        source = f"read_json({quoted(str(lines))}, format='newline_delimited', sample_size=-1)"
        connection.execute(f"COPY (FROM {source}) TO {quoted(str(path))} (FORMAT parquet)")
    finally:
        connection.close()
        lines.unlink()


def _write_parquet(listing: Listing[Any], path: Path) -> None:
    from backread._client.listing import ArrowSource
    from backread._interruptible import run_interruptibly
    from backread.mirror.store.engine import connect, quoted

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


@contextmanager
def destination(output: Path | None) -> Iterator[IO[bytes]]:
    """stdout, or a file that gets its name only once it is complete."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with written("--output", output) as file:
        yield file


@contextmanager
def text_stream(stream: IO[bytes]) -> Iterator[IO[str]]:
    """A text stream for a destination: stdout itself if that is a terminal."""
    if stream is sys.stdout.buffer and sys.stdout.isatty():
        yield sys.stdout
        return
    text = io.TextIOWrapper(stream, "utf-8", "replace", newline="\n")
    try:
        yield text
    finally:
        # Otherwise closing the wrapper would close the stream.
        text.detach()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def write_by_path(write: Callable[[Path], None], target: Target, what: str) -> None:
    """Calls ``write`` with a path, and copies that file to the target.

    Args:
        write: Makes the file; for JSON it has a line for each row.
        target: Its format, which is no table.
        what: What is written, for errors.
    """
    from backread.mirror.store.engine import disk_is_full, load_duckdb

    path = scratch_file(target.format)
    try:
        write(path)
        with destination(target.output) as stream, path.open("rb") as file:
            _copy(file, stream, target)
    except load_duckdb().Error as error:
        then = ""
        if disk_is_full(str(error)):
            then = "; free some space there, or set TMPDIR to another folder"
        raise UnusableArgumentError(
            f"{what} could not be written to {path.parent}: {error}{then}"
        ) from None
    finally:
        path.unlink(missing_ok=True)


def _copy(file: IO[bytes], stream: IO[bytes], target: Target) -> None:
    if target.format is Format.JSON:
        rows = (escaped(line.decode().rstrip("\n")) for line in file)
        _write_json(stream, rows, target.format)
    elif target.format is Format.PARQUET or not (target.is_json or target.on_terminal):
        shutil.copyfileobj(file, stream)
    else:
        clean = escaped if target.is_json else plain_lines
        while lines := file.readlines(LINES):
            stream.write(clean(b"".join(lines).decode()).encode())
