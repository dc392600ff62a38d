"""Runs a query over a mirror and writes its rows."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from backread._files.paths import shown
from backread._files.spreadsheet import guards_in_words
from backread._interruptible import run_interruptibly
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import (
    Format,
    Target,
    destination,
    text_stream,
    write_by_path,
)
from backread.cli.stderr import say, waiting
from backread.cli.table_output import UTC, write_table
from backread.cli.text import plain_lines
from backread.mirror.export.cells import identifier
from backread.mirror.published.queries import RefusedQueryError, check_reads_only, named_restriction
from backread.mirror.published.table import TableName
from backread.mirror.store.engine import connect, named_errors, rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


ROWS_AT_ONCE = 1_000
NUMBERS = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*")
TIME = "TIMESTAMP WITH TIME ZONE"
PREFIX = re.compile(r"^(.*\b)?[A-Z]\w*( [A-Z]\w*)* Error: ", re.DOTALL)
"""The kind of an error of DuckDB, and those of the errors around it."""
RESULT = "found"


@contextmanager
def query_result(folder: Path, query: str) -> Iterator[DuckDBPyConnection]:
    """A database in memory with the table found, which the confined connection cannot write."""
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
            connection.register("stream", confined.sql(query).__arrow_c_stream__())
            connection.execute(f"CREATE TABLE {RESULT} AS FROM stream").fetchall()
            connection.unregister("stream")

    run_interruptibly(run, interrupt)


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turns DuckDB's error about a query into one sentence."""
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


def write_query_rows(
    connection: DuckDBPyConnection, query: str, target: Target, what: str, *, pager: bool = False
) -> None:
    """Writes the rows of a query in their order; DuckDB writes all formats but the table."""
    from backread.mirror.export.copying import write_query

    if target.format is Format.TABLE:
        _write_table(connection, query, target, what, pager)
        return

    def write(path: Path) -> None:
        kind = "json" if target.is_json else str(target.format)
        with waiting(f"writing {what}"):
            guards = write_query(
                connection, query, kind, path, raw_csv=target.raw_csv, excel=target.excel
            )
        if guards:
            say(guards_in_words(guards))

    write_by_path(write, target, what)


def _write_table(
    connection: DuckDBPyConnection, query: str, target: Target, what: str, pager: bool
) -> None:
    columns = [(str(each[0]), str(each[1])) for each in rows_of(connection, f"DESCRIBE {query}")]
    if [name for name, _ in columns] == ["explain_key", "explain_value"]:
        for (text,) in rows_of(connection, f"SELECT explain_value FROM ({query})"):
            sys.stdout.write(f"{plain_lines(text)}\n")
        return
    readable = f"SELECT {', '.join(map(_readable, columns))} FROM ({query})"
    with destination(target.output) as stream, text_stream(stream) as text:
        count = write_table(
            [f"{name}{UTC if kind == TIME else ''}" for name, kind in columns],
            _rows(connection, readable),
            text,
            numbers=[NUMBERS.fullmatch(kind) is not None for _, kind in columns],
            pager=pager,
        )
    if not count:
        say(f"{what} has no rows", named=False)


def _rows(connection: DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    cursor = connection.cursor()
    run_interruptibly(lambda: cursor.execute(query), cursor.interrupt)
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
