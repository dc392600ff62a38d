"""Writes Parquet, CSV and JSON lines with DuckDB's COPY, also the rows of `Mirror.changes`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from backread._files.spreadsheet import BYTE_ORDER_MARK, FORMULA
from backread.mirror.export.cells import (
    as_json_value,
    as_text,
    identifier,
    may_be_text,
    selected,
)
from backread.mirror.export.job import Job, TableQuery, run_beside
from backread.mirror.published.changes import Changes
from backread.mirror.published.parquet_files import nullable
from backread.mirror.store.engine import quoted, rows_of

__all__ = [
    "ChangesFormat",
    "write_changes",
    "write_csv",
    "write_jsonl",
    "write_parquet",
]

ROW_GROUP_SIZE = "32MB"
"""The most that DuckDB collects of a row group in memory, in each of its threads."""


ChangesFormat = Literal["json", "csv", "parquet"]


def write_parquet(job: Job, table: TableQuery, path: Path) -> None:
    """One table as a Parquet file, with the types of the mirror."""
    options = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES '{ROW_GROUP_SIZE}'"
    _copy(job, nullable(table.query, len(table.columns)), path, options)


def write_csv(job: Job, table: TableQuery, path: Path, *, raw: bool, excel: bool) -> None:
    """One table as CSV: UTF-8, with a header, LF line ends and an empty cell for null.

    Texts are quoted, so that an empty one is ``""``, and spreadsheets that split at semicolons and
    tabs do not split them. Texts that a spreadsheet would run as a formula are guarded, unless
    ``raw``; with ``excel`` the file begins with a byte order mark.
    """
    texts = [name for name, kind in table.columns if may_be_text(kind)]
    expressions = {column[0]: as_text(column) for column in table.columns}
    if not raw and texts:
        formulas = {name: _is_formula(name) for name in texts}
        expressions |= {
            name: f"CASE WHEN {formula} THEN '''' ELSE '' END || {_text(name)} "
            f"AS {identifier(name)}"
            for name, formula in formulas.items()
        }
        counted = " + ".join(f"count(*) FILTER ({formula})" for formula in formulas.values())
        job.check()
        [(guards,)] = job.cursor.execute(f"SELECT {counted} FROM ({table.query})").fetchall()
        job.guarded_cells += guards
    first = table.columns[0][0]
    if excel:
        # COPY cannot write a prefix alone.
        query = selected(expressions.values(), table.query)
        marked = identifier(BYTE_ORDER_MARK + first)
        query = (
            f"SELECT {identifier(first)} AS {marked}, * EXCLUDE ({identifier(first)}) "
            f"FROM ({query})"
        )
    else:
        query = selected(expressions.values(), table.query)
    names = [BYTE_ORDER_MARK + name if excel and name == first else name for name in texts]
    quoting = f", FORCE_QUOTE ({', '.join(map(identifier, names))})" if names else ""
    _copy(job, query, path, f"FORMAT csv, HEADER true{quoting}")


def write_jsonl(job: Job, table: TableQuery, path: Path) -> None:
    """One table as JSON lines: nested values and undocumented fields as JSON, null as null."""
    query = selected(map(as_json_value, table.columns), table.query)
    _copy(job, query, path, "FORMAT json")


def _copy(job: Job, query: str, path: Path, options: str) -> None:
    job.execute(f"COPY ({query}) TO {quoted(str(path))} ({options}, USE_TMP_FILE false)")


def _is_formula(name: str) -> str:
    # The option lets a dot match line ends; the pattern has none, but says what is meant.
    return f"coalesce(regexp_matches({_text(name)}, {quoted('^' + FORMULA)}, 's'), false)"


def _text(name: str) -> str:
    return f"CAST({identifier(name)} AS VARCHAR)"


def write_changes(
    changes: Changes, shape: ChangesFormat, path: Path, *, raw_csv: bool = False
) -> tuple[int, int]:
    """Writes a file in this format; returns the numbers of its rows and of guarded cells.

    JSON is one line per row. Raises ``duckdb.Error`` if the file cannot be written.
    """
    cursor, query = changes._opened()
    described = rows_of(cursor, f"DESCRIBE {query}")
    columns = tuple((str(each[0]), str(each[1])) for each in described)
    table = TableQuery("changes", query, columns, (), changes.num_rows)
    job = Job(cursor, (table,), path.parent)
    writers: dict[ChangesFormat, Callable[[Job, TableQuery, Path], None]] = {
        "json": write_jsonl,
        "csv": partial(write_csv, raw=raw_csv, excel=False),
        "parquet": write_parquet,
    }

    def write_table(job: Job) -> None:
        job.begin(table)
        writers[shape](job, table, path)

    run_beside(job, write_table, None)
    return table.rows, job.guarded_cells
