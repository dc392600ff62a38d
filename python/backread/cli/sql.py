"""``sql``: a query over the mirror."""

from __future__ import annotations

import io
import sys
from typing import Annotated

from backread.cli.arguments import Folder, PagerOption, argument
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Target, with_target

__all__ = ["sql"]


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
