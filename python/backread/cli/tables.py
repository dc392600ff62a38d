"""``tables``: the tables of the mirror, and the columns of one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from backread._display.words import size
from backread.cli.arguments import Folder, argument
from backread.cli.output import Target, with_target, write_rows
from backread.cli.waiting import waiting

__all__ = ["Table", "tables"]

ABOUT = {
    "users": "one row per user",
    "messages": "one row per message, with its sender",
    "conversations": "one row per user: counts, times, first response",
    "lists": "one row per user: how messages were read, proof",
    "rejects": "records of the service that did not fit",
    "runs": "one row per sync",
}

Table = StrEnum("Table", "USERS MESSAGES CONVERSATIONS LISTS REJECTS RUNS")


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
