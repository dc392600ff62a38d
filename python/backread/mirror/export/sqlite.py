"""Writes an SQLite database with the standard library."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from backread.mirror.export.cells import as_text, identifier, selected
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.target import WriterError

__all__ = ["write_sqlite"]

TYPES = {"BIGINT": "INTEGER", "BOOLEAN": "BOOLEAN", "DOUBLE": "REAL"}
"""All others are TEXT: times as ISO 8601, which SQLite's date functions read, and lists as JSON."""

WRITE_FAILED = sqlite3.SQLITE_IOERR_WRITE


def write_sqlite(job: Job, path: Path) -> None:
    """All tables in one database, each with a unique index on its key."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            # Nobody else sees the file before it is complete, so it needs no journal.
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            for table in job.tables:
                job.begin(table)
                _write_table(job, table, connection)
    except sqlite3.Error as error:
        # SQLite does not say so of a limit on the size of files.
        code = getattr(error, "sqlite_errorcode", None)
        full = ": file too large or disk full" if code == WRITE_FAILED else ""
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
        connection.execute(
            f"CREATE UNIQUE INDEX {identifier(table.name + '_key')} ON {name} ({key})"
        )
