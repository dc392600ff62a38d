"""``tables``: the tables of the mirror, and the columns of one."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from backread._display.words import size
from backread.cli.arguments import Folder
from backread.cli.rows import as_json
from backread.cli.table_output import print_table
from backread.cli.waiting import waiting
from backread.mirror.published.table import TableName

__all__ = ["tables"]

ABOUT: dict[TableName, str] = {
    "users": "one row per user",
    "messages": "one row per message, with its sender",
    "conversations": "one row per user: counts, times, first response",
    "lists": "one row per user: how messages were read, proof",
    "rejects": "records of the service that did not fit",
    "runs": "one row per sync",
}

if TYPE_CHECKING:
    from backread.mirror import Mirror

    Table = TableName
else:
    Table = StrEnum("Table", {each.upper(): each for each in get_args(TableName)})


class Shape(StrEnum):
    """The values of ``--format``."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


def tables(
    folder: Folder,
    table: Annotated[
        Table | None,
        typer.Argument(metavar="TABLE", show_default=False, help="List the columns of this table."),
    ] = None,
    shape: Annotated[
        Shape, typer.Option("--format", help="A table, or a line of JSON for each row of it.")
    ] = Shape.TABLE,
) -> None:
    """Lists the tables of the mirror in FOLDER, or the columns of one.

    With the rows of each table and the size of its files. `conversations` is computed from the
    others and has no files.
    """
    from backread.mirror import Mirror

    with waiting("counting rows"):
        rows = _tables(Mirror(folder)) if table is None else _columns(Mirror(folder), str(table))
    if shape is Shape.TABLE:
        readable = [
            {name: _readable(name, value) for name, value in row.items() if name != "columns"}
            for row in rows
        ]
        columns = list(readable[0])
        numbers = [name in ("rows", "size") for name in columns]
        cells = [[row[name] for name in columns] for row in readable]
        print_table(columns, cells, sys.stdout, numbers=numbers)
        return
    for row in rows:
        sys.stdout.write(f"{as_json(row)}\n")


def _tables(mirror: Mirror) -> list[dict[str, object]]:
    return [
        {
            "table": name,
            "rows": table.num_rows,
            "size": table.num_bytes,
            "about": ABOUT[name],
            "columns": table.columns,
        }
        for name, table in mirror.tables.items()
    ]


def _columns(mirror: Mirror, name: str) -> list[dict[str, object]]:
    relation = mirror.sql(f"DESCRIBE {name}")
    return [{"column": column, "type": kind} for column, kind, *_ in relation.fetchall()]


def _readable(name: str, value: object) -> object:
    if not isinstance(value, int):
        return value
    return size(value) if name == "size" else f"{value:,}"
