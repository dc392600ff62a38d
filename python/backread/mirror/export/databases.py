"""Writes SQLite databases with the standard library, and DuckDB databases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from backread.mirror.export.cells import as_text, identifier, selected
from backread.mirror.export.copying import write_parquet
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.target import WriterError
from backread.mirror.store.engine import attach_portable, connect, pattern, rows_of

TYPES = {"BIGINT": "INTEGER", "BOOLEAN": "BOOLEAN", "DOUBLE": "REAL"}
"""All others are TEXT: times as ISO 8601, which SQLite's date functions read, and lists as JSON."""

WRITE_FAILED = sqlite3.SQLITE_IOERR_WRITE

MEMORY_LIMIT = "500MB"


def write_sqlite(job: Job, path: Path) -> None:
    """All tables in one database, each with a unique index on its key."""
    try:
        with closing(
            sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        ) as connection:
            # The file is private until it is complete, so it needs no journal.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            for table in job.begin_tables():
                _write_table(job, table, connection)
    except sqlite3.Error as error:
        # SQLite does not say so of a limit on the size of files.
        full = ": disk full" if error.sqlite_errorcode == WRITE_FAILED else ""
        raise WriterError(f"{error}{full}") from error


def _write_table(job: Job, table: TableQuery, connection: sqlite3.Connection) -> None:
    name = identifier(table.name)
    columns = ", ".join(
        f"{identifier(column)} {TYPES.get(kind, 'TEXT')}" for column, kind in table.columns
    )
    connection.execute(f"CREATE TABLE {name} ({columns})")
    places = ", ".join("?" * len(table.columns))
    connection.execute("BEGIN")
    for rows in job.batches(selected(map(as_text, table.columns), table.query)):
        connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
    connection.execute("COMMIT")
    if table.key:
        # Created at the end: SQLite sorts the keys on disk.
        key = ", ".join(map(identifier, table.key))
        index = f"CREATE UNIQUE INDEX {identifier(table.name + '_key')} ON {name} ({key})"
        job.run(lambda: connection.execute(index), connection.interrupt)


def write_duckdb(job: Job, path: Path) -> None:
    """All tables in one database, with the types of the mirror.

    They pass through Parquet: the reader's database has no limit of memory, and would keep what it
    writes there until its share of the machine's memory is full.
    """
    options = {"memory_limit": MEMORY_LIMIT, "temp_directory": str(job.folder / "spilled")}
    with closing(connect(None, options)) as connection:
        attach_portable(connection, path, "exported")
        for table in job.begin_tables():
            file = job.folder / f"{table.name}.parquet"
            write_parquet(job, table, file)
            rows_of(connection, f"SET preserve_insertion_order = {table.is_sorted}")
            job.execute(
                f"CREATE TABLE exported.{identifier(table.name)} AS FROM "
                f"read_parquet({pattern(file)}, hive_partitioning = false)",
                connection,
            )
            file.unlink()
        job.execute("CHECKPOINT exported", connection)
        rows_of(connection, "DETACH exported")
