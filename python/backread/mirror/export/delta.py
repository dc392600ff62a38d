"""Writes Delta tables with deltalake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from backread._files.paths import shown
from backread.mirror.export.copying import write_parquet
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.target import TargetError, WriterError

__all__ = ["check_delta_path", "load_deltalake", "write_delta"]

MISREAD = "%[]^|"
PART = "part-00000.parquet"


def load_deltalake() -> Any:
    """The module; if it is missing, an ImportError says how to install it."""
    try:
        import deltalake  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "deltalake":
            raise
        raise ImportError(
            "an export to Delta needs deltalake, which is not installed; "
            'run: pip install "backread[delta]"',
            name="deltalake",
        ) from None
    return deltalake


def check_delta_path(path: Path) -> None:
    """Raises `TargetError` for a path that deltalake reads as the syntax of a URI."""
    if found := sorted(set(MISREAD) & set(str(path))):
        raise TargetError(
            f"{shown(path)} has {' and '.join(found)} in its path, which deltalake cannot write; "
            "choose another"
        )


def write_delta(job: Job, table: TableQuery, path: Path) -> None:
    """One table as a Delta table, with the types of the mirror.

    DuckDB writes its Parquet file, and deltalake the log: its own writer took 1.4 GB for 300 MB of
    long messages, and its conversion of a folder writes warnings to stderr.
    """
    deltalake = load_deltalake()
    from arro3.core import RecordBatchReader  # type: ignore[import-not-found, unused-ignore]

    path.mkdir(0o700)
    write_parquet(job, table, path / PART)
    job.check()
    if not table.rows:
        (path / PART).unlink()
    schema = RecordBatchReader.from_stream(job.cursor.sql(table.query).limit(0)).schema
    parts = [_part(file, table.rows) for file in path.iterdir()]
    try:
        delta_schema = deltalake.Schema.from_arrow(schema)
        created = deltalake.DeltaTable.create(str(path), delta_schema, name=table.name)
        created.create_write_transaction(parts, mode="append", schema=delta_schema, partition_by=[])
    except deltalake.exceptions.DeltaError as error:
        raise WriterError(str(error)) from error


def _part(file: Path, rows: int) -> Any:
    from deltalake.transaction import AddAction

    found = file.stat()
    return AddAction(
        path=file.name,
        size=found.st_size,
        partition_values={},
        modification_time=int(found.st_mtime * 1000),
        data_change=True,
        stats=json.dumps({"numRecords": rows}),
    )
