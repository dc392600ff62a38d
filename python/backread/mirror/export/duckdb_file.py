"""Writes a DuckDB database."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from backread.mirror.engine import quoted
from backread.mirror.export.cells import identifier
from backread.mirror.export.job import Job

__all__ = ["write_duckdb"]

STORAGE_VERSION = "v1.0.0"
"""DuckDB 1.0 and later open the file; by default only DuckDB 2.0 and later would."""


def write_duckdb(job: Job, path: Path) -> None:
    """All tables in one database, with the types of the mirror."""
    # Attached databases are visible to all cursors of the reader.
    name = f"export_{token_hex(8)}"
    job.check()
    attach = f"ATTACH {quoted(str(path))} AS {name} (STORAGE_VERSION {quoted(STORAGE_VERSION)})"
    job.cursor.execute(attach).fetchall()
    try:
        for table in job.tables:
            job.begin(table)
            job.execute(f"CREATE TABLE {name}.{identifier(table.name)} AS {table.query}")
        job.execute(f"CHECKPOINT {name}")
    finally:
        with suppress(Exception):
            job.cursor.execute(f"DETACH {name}").fetchall()
