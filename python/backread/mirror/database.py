"""The file of the database: made whole, opened only if it is ours, brought to this version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from backread._disk import flush_directory, flush_file
from backread.errors import MirrorError
from backread.mirror.engine import connect, rows_of, transaction
from backread.mirror.lock import LOCK_NAME
from backread.mirror.manifest import PUBLISHED
from backread.mirror.migrate import steps_from
from backread.mirror.schema import CONTENT_TABLES, SCHEMA_VERSION, create_statements

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["OWN_NAMES", "open_database", "refuse_foreign"]

DATABASE_NAME = "mirror.duckdb"
MEMORY_LIMIT = "1GB"
CHECKPOINT_AT = "64MB"
"""How long DuckDB's log gets; each checkpoint packs the rows at the tables' ends anew."""

OWN_NAMES = {
    DATABASE_NAME,
    # The beginnings of a new one, DuckDB's log, and where it puts what exceeds its memory.
    *(f"{DATABASE_NAME}.{ending}" for ending in ("new", "new.wal", "wal", "tmp")),
    LOCK_NAME,
    PUBLISHED,
}
"""All that a sync puts into the folder."""


@contextmanager
def open_database(folder: Path) -> Iterator[DuckDBPyConnection]:
    """The folder's database, made where there is none; the caller holds the folder's lock.

    One of an earlier version is brought to this one, and keeps its rows. `MirrorError` where
    another program or a newer backread made it. DuckDB's own errors pass; the caller names them.
    """
    path = folder / DATABASE_NAME
    if not path.exists():
        _create(path)
    connection = _connect(path)
    try:
        _bring_forward(connection, _schema_version(folder, connection))
        yield connection
    finally:
        connection.close()


def _connect(path: Path) -> DuckDBPyConnection:
    return connect(path, {"memory_limit": MEMORY_LIMIT, "checkpoint_threshold": CHECKPOINT_AT})


def refuse_foreign(folder: Path) -> None:
    """`MirrorError` where an existing folder holds other files and no mirror; it is left alone."""
    if (folder / DATABASE_NAME).exists():
        return
    foreign = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.name not in OWN_NAMES and not entry.name.startswith(".")
    )
    if foreign:
        raise MirrorError(
            f"{folder} holds no mirror but other files ({foreign[0]}); sync into an empty folder"
        )


def _create(path: Path) -> None:
    # Made aside and renamed, so that a kill leaves no half-made database under its name.
    fresh = path.with_name(f"{path.name}.new")
    for leftover in (fresh, fresh.with_name(f"{fresh.name}.wal")):
        leftover.unlink(missing_ok=True)
    connection = _connect(fresh)
    try:
        for statement in create_statements(uuid4().hex):
            rows_of(connection, statement)
        rows_of(connection, "CHECKPOINT")
    finally:
        connection.close()
    flush_file(fresh)
    fresh.replace(path)
    flush_directory(path.parent)


def _schema_version(folder: Path, connection: DuckDBPyConnection) -> int:
    tables = {name for (name,) in rows_of(connection, "SELECT table_name FROM duckdb_tables()")}
    version = None
    if {"meta", *(table.name for table in CONTENT_TABLES)} <= tables:
        found = rows_of(connection, "SELECT value FROM meta WHERE key = 'schema_version'")
        version = found[0][0] if found else None
    if version is None or not version.isdecimal():
        raise MirrorError(
            f"{folder} holds a {DATABASE_NAME} that backread did not make; sync into a new folder"
        )
    if int(version) > SCHEMA_VERSION:
        raise MirrorError(
            f"the mirror in {folder} was written by a newer backread (schema {version}, this one "
            f"knows up to {SCHEMA_VERSION}); upgrade backread"
        )
    return int(version)


def _bring_forward(connection: DuckDBPyConnection, version: int) -> None:
    for step in steps_from(version):
        with transaction(connection):
            for statement in step.statements:
                rows_of(connection, statement)
            rows_of(
                connection,
                "UPDATE meta SET value = ? WHERE key = 'schema_version'",
                [str(step.version)],
            )
