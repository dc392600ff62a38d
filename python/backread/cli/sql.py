"""``sql`` and ``tables``: queries over the mirror, and what they can name."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from typing import Annotated, Any

from backread._display.words import size
from backread.cli.arguments import Folder, PagerOption, argument
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Target, with_target, write_rows
from backread.cli.stderr import waiting

ABOUT = {
    "users": "one row per user",
    "messages": "one row per message, with its sender",
    "conversations": "one row per user: counts, times, first response",
    "lists": "one row per user: how messages were read, proof",
    "files": "one row per attachment: its hash, or why it is missing",
    "rejects": "records of the service that did not fit",
    "runs": "one row per sync",
}

Table = StrEnum("Table", "USERS MESSAGES CONVERSATIONS LISTS FILES REJECTS RUNS")


@with_target
def sql(
    target: Target,
    folder: Folder,
    query: Annotated[str, argument("QUERY", "One SELECT of DuckDB's SQL; - for stdin.")],
    pager: PagerOption = True,
) -> None:
    """Runs a query over the mirror in FOLDER.

    It can read the mirror's tables and nothing else: no files, no network. `backread tables` names
    the tables and their columns; `forgotten` (ids that `forget` removed) and `profile` (of the
    service, as JSON) are in queries only. Times are UTC.

    Examples:
        backread sql chats "SELECT name, messages FROM conversations"
        backread sql chats - -o days.csv < days.sql
        backread sql chats "FROM users" --format jsonl
    """
    from backread.cli.query import query_result, write_query_rows

    text = _from_stdin() if query == "-" else query
    if not text.isascii() and text != text.encode("utf-8", "replace").decode():
        raise UnusableArgumentError("the query has bytes that are not UTF-8 text")
    with query_result(folder, text) as connection:
        write_query_rows(connection, "SELECT * FROM found", target, "the result", pager=pager)


def _from_stdin() -> str:
    if sys.stdin is None:
        raise UnusableArgumentError("stdin is closed; give the query as an argument")
    if isinstance(sys.stdin, io.TextIOWrapper) and not sys.stdin.isatty():
        # Files are UTF-8 whatever the locale, and editors on Windows write a byte order mark.
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
    return sys.stdin.read()


@with_target
def tables(
    target: Target,
    folder: Folder,
    table: Annotated[Table | None, argument("TABLE", "List the columns of this table.")] = None,
) -> None:
    """Lists the tables of the mirror in FOLDER, or the columns of one.

    With the rows of each table and the size of its files. `conversations` is computed from the
    others and has no files.

    Examples:
        backread tables chats
        backread tables chats messages
    """
    from backread.mirror import Mirror

    mirror = Mirror(folder)
    with waiting("counting rows"):
        if table is not None:
            described = mirror.sql(f"DESCRIBE {table}").fetchall()
            rows = [{"column": name, "type": kind} for name, kind, *_ in described]
        else:
            rows = [
                {
                    "table": name,
                    "rows": each.num_rows,
                    "size": each.num_bytes,
                    "about": ABOUT[name],
                    "columns": each.columns,
                }
                for name, each in mirror.tables.items()
            ]
    columns = [name for name in rows[0] if name != "columns"]
    numbers = [name in ("rows", "size") for name in columns]
    write_rows(
        rows,
        target,
        columns,
        lambda row: [_readable(name, row[name]) for name in columns],
        numbers=numbers,
        wrap=True,
    )


def _readable(name: str, value: Any) -> object:
    if not isinstance(value, int):
        return value
    return size(value) if name == "size" else f"{value:,}"
