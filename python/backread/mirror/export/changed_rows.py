"""Writes the rows of `Mirror.changes` to a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from backread.mirror.changes import Changes
from backread.mirror.engine import rows_of
from backread.mirror.export.copying import write_csv, write_jsonl, write_parquet
from backread.mirror.export.job import Job, TableQuery, run_beside

__all__ = ["ChangesFormat", "write_changes"]

ChangesFormat = Literal["json", "csv", "parquet"]


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
