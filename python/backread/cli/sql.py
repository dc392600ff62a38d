"""``sql``: a query over the mirror."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from backread._files.paths import shown
from backread._files.spreadsheet import guards_in_words
from backread._interruptible import run_interruptibly
from backread.cli.arguments import Folder
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import (
    Csv,
    Format,
    destination,
    format_of,
    refuse_binary_on_terminal,
    write_by_path,
)
from backread.cli.pager import write_paged
from backread.cli.paths import to_write
from backread.cli.read import csv_options
from backread.cli.stderr import say
from backread.cli.table_output import UTC, table_lines
from backread.cli.text import plain_lines
from backread.cli.waiting import waiting
from backread.mirror.export.cells import identifier
from backread.mirror.published.queries import RefusedQueryError, check_reads_only, named_restriction
from backread.mirror.published.table import TableName
from backread.mirror.store.engine import connect, named_errors, rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from duckdb.sqltypes import DuckDBPyType

__all__ = ["sql"]

ROWS_AT_ONCE = 1_000
NUMBERS = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*")
TIME = "TIMESTAMP WITH TIME ZONE"
PREFIX = re.compile(r"^(.*\b)?[A-Z]\w*( [A-Z]\w*)* Error: ", re.DOTALL)
"""The kind of an error of DuckDB, and those of the errors around it."""
RESULT = "found"

CHANGED_BY_ARROW = {"bit", "time with time zone", "uhugeint"}
"""The types that DuckDB writes to an Arrow stream as others with fewer values.

A HUGEINT becomes a DECIMAL(38, 0) that keeps all digits, a UUID and an ENUM their text.
"""
NESTED = {"array", "list", "map", "struct", "tuple", "union"}


class Shape(StrEnum):
    """The values of ``--format``."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"


def sql(
    folder: Folder,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", show_default=False, help="One SELECT of DuckDB's SQL; - for stdin."
        ),
    ],
    shape: Annotated[
        Shape | None,
        typer.Option(
            "--format", show_default="the suffix of --output, else table", help="What to write."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            parser=to_write,
            help="Write here, completely or not at all.",
        ),
    ] = None,
    raw_csv: Annotated[
        bool, typer.Option("--raw-csv", help="CSV with unchanged texts, even spreadsheet formulas.")
    ] = False,
    excel: Annotated[
        bool, typer.Option("--excel", help="CSV that Excel opens as UTF-8, with a byte order mark.")
    ] = False,
    pager: Annotated[
        bool,
        typer.Option(
            "--pager/--no-pager", help="Show a table that does not fit on the terminal in PAGER."
        ),
    ] = True,
) -> None:
    """Runs a query over the mirror in FOLDER.

    It can read the mirror's tables and nothing else: no files, no network. `backread tables` names
    the tables and their columns; `forgotten` (ids that `forget` removed) and `profile` (of the
    service, as JSON) are in queries only. Times are UTC.
    """
    given = None if shape is None else Format(shape)
    chosen = Format.TABLE if given is None and output is None else format_of(given, output)
    options = csv_options(chosen, raw_csv, excel)
    refuse_binary_on_terminal(chosen, output)
    text = _from_stdin() if query == "-" else query
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        raise UnusableArgumentError("the query has bytes that are not UTF-8 text")
    with _result(folder, text) as connection:
        if chosen is Format.TABLE:
            _write_table(connection, output, pager)
        else:
            write = partial(_write_file, connection, chosen, options)
            write_by_path(write, chosen, output, "the result")


def _from_stdin() -> str:
    if sys.stdin is None:
        raise UnusableArgumentError("stdin is closed; give the query as an argument")
    if isinstance(sys.stdin, io.TextIOWrapper) and not sys.stdin.isatty():
        # Files are UTF-8 whatever the locale, and editors on Windows write a byte order mark.
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
    return sys.stdin.read()


@contextmanager
def _result(folder: Path, query: str) -> Iterator[DuckDBPyConnection]:
    """A database in memory with the result, which the confined connection could not write."""
    from backread.mirror.published.snapshot_reader import SnapshotReader

    connection = connect(None)
    try:
        with waiting("running the query"), named_errors(folder), _explained(folder):
            confined = SnapshotReader(folder.absolute()).cursor(restricted=True)
            _run_beside(confined, connection, query)
        yield connection
    finally:
        connection.close()


def _run_beside(confined: DuckDBPyConnection, connection: DuckDBPyConnection, query: str) -> None:
    """Copies the query's rows into the connection."""

    def interrupt() -> None:
        confined.interrupt()
        connection.interrupt()

    def run() -> None:
        check_reads_only(confined, query)
        with named_restriction(unrestricted=False):
            # A capsule: DuckDB would request several streams of an object, each of them a run.
            connection.register("stream", _for_arrow(confined.sql(query)).__arrow_c_stream__())
            connection.execute(f"CREATE TABLE {RESULT} AS FROM stream").fetchall()
            connection.unregister("stream")

    run_interruptibly(run, interrupt)


def _for_arrow(found: DuckDBPyRelation) -> DuckDBPyRelation:
    """The result with those columns as text whose values Arrow would change."""
    changed = [_is_changed_by_arrow(kind) for kind in found.types]
    if not any(changed):
        return found
    columns = []
    for place, (name, is_changed) in enumerate(zip(found.columns, changed, strict=True), start=1):
        # By their places, because two columns may have the same name.
        value = f"CAST(#{place} AS VARCHAR)" if is_changed else f"#{place}"
        columns.append(f"{value} AS {identifier(name)}")
    return found.project(", ".join(columns))


def _is_changed_by_arrow(kind: DuckDBPyType) -> bool:
    if kind.id not in NESTED:
        return kind.id in CHANGED_BY_ARROW
    # One of an array's children is its size.
    parts = [part for _, part in kind.children if not isinstance(part, (int, list))]
    return any(map(_is_changed_by_arrow, parts))


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turns what DuckDB says of a query into one sentence."""
    from backread.mirror.store.engine import load_duckdb

    duckdb = load_duckdb()
    try:
        yield
    except RefusedQueryError as error:
        raise UnusableArgumentError(f"`sql` {error.reason}") from None
    except duckdb.PermissionException:
        raise UnusableArgumentError(
            "`sql` reads the mirror's tables and nothing else: no files, no network, no settings"
        ) from None
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        said, _, place = PREFIX.sub("", str(error)).partition("\n\nLINE ")
        number = place.partition(":")[0]
        where = f" in line {number}" if number not in ("", "1") else ""
        raise UnusableArgumentError(
            f"the query cannot be run: {said.strip().rstrip('.!')}{where}{_hint(error, folder)}"
        ) from None


def _hint(error: Exception, folder: Path) -> str:
    kind = type(error).__name__
    if kind == "CatalogException" and "Table" in str(error):
        names = (*get_args(TableName), "forgotten", "profile")
        return f"; the tables are {', '.join(names[:-1])} and {names[-1]}"
    if kind == "BinderException":
        return f"; `backread tables {shown(folder)} TABLE` lists the columns of a table"
    return ""


def _write_table(connection: DuckDBPyConnection, output: Path | None, pager: bool) -> None:
    columns = _columns(connection)
    if [name for name, _ in columns] == ["explain_key", "explain_value"]:
        for (text,) in rows_of(connection, f"SELECT explain_value FROM {RESULT}"):
            sys.stdout.write(f"{plain_lines(text)}\n")
        return
    headings = [f"{name}{UTC if kind == TIME else ''}" for name, kind in columns]
    numbers = [NUMBERS.fullmatch(kind) is not None for _, kind in columns]
    rows = _Rows(connection, f"SELECT {', '.join(map(_readable, columns))} FROM {RESULT}")
    if output is not None:
        with destination(output) as stream:
            for line in table_lines(headings, rows, io.StringIO(), numbers=numbers):
                stream.write(f"{line}\n".encode("utf-8", "replace"))
        return
    write_paged(table_lines(headings, rows, sys.stdout, numbers=numbers), allowed=pager)
    if not rows_of(connection, f"SELECT 1 FROM {RESULT} LIMIT 1"):
        say("the result has no rows", named=False)


class _Rows:
    """The rows of a query; iterated as often as needed, and never held."""

    def __init__(self, connection: DuckDBPyConnection, query: str) -> None:
        self._connection = connection
        self._query = query

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        cursor = self._connection.cursor()
        run_interruptibly(lambda: cursor.execute(self._query), cursor.interrupt)
        while rows := run_interruptibly(lambda: cursor.fetchmany(ROWS_AT_ONCE), cursor.interrupt):
            yield from rows


def _readable(column: tuple[str, str]) -> str:
    """A column as people read it, as an SQL expression."""
    name, kind = column
    value = identifier(name)
    if kind == TIME:
        # To the second, because queries compute with times.
        return f"strftime({value} AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S')"
    if kind == "BOOLEAN" or NUMBERS.fullmatch(kind):
        return value
    return f"CAST({value} AS VARCHAR)"


def _columns(connection: DuckDBPyConnection) -> list[tuple[str, str]]:
    described = rows_of(connection, f"DESCRIBE {RESULT}")
    return [(str(name), str(kind)) for name, kind, *_ in described]


def _write_file(connection: DuckDBPyConnection, shape: Format, options: Csv, path: Path) -> None:
    """Writes the result in its order; DuckDB does all of it."""
    from backread.mirror.export.copying import write_query

    query = f"SELECT * FROM {RESULT}"
    with waiting("writing the result"):
        guards = write_query(
            connection, query, shape.value, path, raw_csv=options.raw, excel=options.excel
        )
    if guards:
        say(guards_in_words(guards))
