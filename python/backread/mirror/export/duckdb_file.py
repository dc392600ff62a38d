"""Writes a DuckDB database."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from backread.mirror.export.cells import identifier
from backread.mirror.export.copying import write_parquet
from backread.mirror.export.job import Job
from backread.mirror.store.engine import connect, pattern, quoted

__all__ = ["write_duckdb"]

STORAGE_VERSION = "v1.0.0"
"""DuckDB 1.0 and later open the file; by default only DuckDB 2.0 and later would."""

MEMORY_LIMIT = "500MB"


def write_duckdb(job: Job, path: Path) -> None:
    """All tables in one database, with the types of the mirror.

    They pass through Parquet: the reader's database has no limit of memory, and would keep what it
    writes there until its share of the machine's memory is full.
    """
    is_sorted = any(table.is_sorted for table in job.tables)
    with closing(connect(None, {"memory_limit": MEMORY_LIMIT})) as connection:
        for setting in (
            f"temp_directory = {quoted(str(job.folder / 'spilled'))}",
            # Otherwise threads write their rows as they come, which takes less memory.
            f"preserve_insertion_order = {'true' if is_sorted else 'false'}",
        ):
            connection.execute(f"SET {setting}").fetchall()
        connection.execute(
            f"ATTACH {quoted(str(path))} AS exported (STORAGE_VERSION {quoted(STORAGE_VERSION)})"
        ).fetchall()
        for table in job.tables:
            job.begin(table)
            rows = job.folder / f"{table.name}.parquet"
            write_parquet(job, table, rows)
            with job.interrupting(connection):
                connection.execute(
                    f"CREATE TABLE exported.{identifier(table.name)} AS FROM "
                    f"read_parquet({pattern(rows)}, hive_partitioning = false)"
                ).fetchall()
            rows.unlink()
        with job.interrupting(connection):
            connection.execute("CHECKPOINT exported").fetchall()
            connection.execute("DETACH exported").fetchall()
