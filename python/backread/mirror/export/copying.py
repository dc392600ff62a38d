"""Writes Parquet, CSV and JSON lines with DuckDB's COPY."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backread._files.spreadsheet import BYTE_ORDER_MARK, FORMULA
from backread.mirror.export.cells import (
    as_excel_text,
    as_json_value,
    as_text,
    identifier,
    may_be_text,
    selected,
)
from backread.mirror.export.job import Codec, Job, TableQuery
from backread.mirror.published.publish import nullable
from backread.mirror.store.engine import quoted, rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROW_GROUP_SIZE = "32MB"
"""The most that DuckDB collects of a row group in memory, in each of its threads."""

UNORDERED = "SET SESSION preserve_insertion_order = false"
"""Otherwise COPY buffers rows to write them in the order of the snapshot's files."""

TableWriter = Callable[[Job, TableQuery, Path], None]


def table_writer(
    shape: str, *, raw_csv: bool = False, excel: bool = False, codec: Codec = "zstd"
) -> TableWriter:
    """What writes one table in a format whose files hold one."""
    if shape == "csv":
        return partial(_write_csv, raw=raw_csv, excel=excel)
    return partial(write_parquet, codec=codec) if shape == "parquet" else _write_jsonl


def write_query(
    cursor: DuckDBPyConnection,
    query: str,
    shape: str,
    path: Path,
    *,
    raw_csv: bool = False,
    excel: bool = False,
) -> int:
    """Writes the rows of a query; returns the number of guarded cells. JSON is a line per row."""
    columns = tuple((str(each[0]), str(each[1])) for each in rows_of(cursor, f"DESCRIBE {query}"))
    table = TableQuery("rows", query, columns)
    job = Job(cursor, (table,), path.parent)
    table_writer(shape, raw_csv=raw_csv, excel=excel)(job, table, path)
    return job.guarded_cells


def write_parquet(job: Job, table: TableQuery, path: Path, *, codec: Codec = "zstd") -> None:
    """One table as a Parquet file, with the types of the mirror."""
    options = f"FORMAT parquet, COMPRESSION {codec}, ROW_GROUP_SIZE_BYTES '{ROW_GROUP_SIZE}'"
    _copy(job, table, nullable(table.query, len(table.columns)), path, options)


def _write_csv(job: Job, table: TableQuery, path: Path, *, raw: bool, excel: bool) -> None:
    """One table as CSV: UTF-8, with a header, LF line ends and an empty cell for null.

    Texts are quoted, so that an empty one is ``""``, and spreadsheets that split at semicolons and
    tabs do not split them. Texts that a spreadsheet would run as a formula are guarded, unless
    ``raw``; with ``excel`` the file begins with a byte order mark, and times are as Excel reads.
    """
    texts = [name for name, kind in table.columns if may_be_text(kind)]
    written = as_excel_text if excel else as_text
    expressions = {column[0]: written(column) for column in table.columns}
    if not raw:
        formulas = {name: _is_formula(name) for name in texts}
        expressions |= {
            name: f"CASE WHEN {formula} THEN '''' ELSE '' END || {_text(name)} "
            f"AS {identifier(name)}"
            for name, formula in formulas.items()
        }
        job.guarded_cells += job.count_cells(table, list(formulas.values()))
    query = selected(expressions.values(), table.query)
    if excel:
        # COPY cannot write a prefix alone, so the first column's name begins with the mark.
        first = table.columns[0][0]
        marked = BYTE_ORDER_MARK + first
        query = f"SELECT * RENAME ({identifier(first)} AS {identifier(marked)}) FROM ({query})"
        texts = [marked if name == first else name for name in texts]
    quoting = f", FORCE_QUOTE ({', '.join(map(identifier, texts))})" if texts else ""
    _copy(job, table, query, path, f"FORMAT csv, HEADER true{quoting}")


def _write_jsonl(job: Job, table: TableQuery, path: Path) -> None:
    """One table as JSON lines: nested values and undocumented fields as JSON, null as null."""
    query = selected(map(as_json_value, table.columns), table.query)
    _copy(job, table, query, path, "FORMAT json")


def _copy(job: Job, table: TableQuery, query: str, path: Path, options: str) -> None:
    job.copy(f"COPY ({query}) TO {quoted(str(path))} ({options}, USE_TMP_FILE false)", table)


def _is_formula(name: str) -> str:
    # The option lets a dot match line ends; the pattern has none, but says what is meant.
    return f"coalesce(regexp_matches({_text(name)}, {quoted('^' + FORMULA)}, 's'), false)"


def _text(name: str) -> str:
    return f"CAST({identifier(name)} AS VARCHAR)"
