"""Creates, checks and opens the files of the database, and limits its memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from backread._files.access import (
    access_of,
    check_file,
    create,
    flush_directory,
    flush_file,
    give_access,
    give_like_folder,
    make_subfolder,
)
from backread._files.unfinished import private_folder, remove_folder, remove_leftovers
from backread.errors import MirrorError
from backread.mirror.store.engine import (
    DATABASE_IS_DAMAGED,
    LOG_IS_DAMAGED,
    connect,
    load_duckdb,
    quoted,
    rows_of,
)
from backread.mirror.store.folder import DATABASE_NAME, LOG_NAME, SPILL_NAME
from backread.mirror.store.schema import (
    FORMAT,
    PURGE_PENDING,
    create_statements,
    other_format,
    tables,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAGIC = b"DUCK"
MAGIC_AT = 8
"""Where DuckDB's files have it."""

ZEROS = 16
"""Bytes of 0 at the end of the log that a power cut has left there."""

CHECKPOINT_AT = "64MB"
"""The size of DuckDB's log before a checkpoint, which repacks the rows at the tables' ends."""

ROWS_A_GROUP = 16_384
"""Rows that the database stores together. A larger commit goes to its place at once, without the
log, and a checkpoint repacks fewer: DuckDB's 122,880 rows are 1.2 GB with bodies of 10 KB. Each
group takes some 100 KB of memory, so smaller ones would not do for large mirrors."""


@contextmanager
def open_database(folder: Path, memory_limit: int | None = None) -> Iterator[DuckDBPyConnection]:
    """Opens the folder's database, or creates it; the caller holds the folder's lock.

    ``memory_limit`` is in bytes, None for `default_memory_limit`. Raises `MirrorError` for a
    database of another program or another format; the caller translates DuckDB's own errors.
    """
    path = folder / DATABASE_NAME
    for each in (path, folder / LOG_NAME):
        check_file(each)
    remove_leftovers(folder)
    with _spill_folder(folder) as spill:
        if not path.exists():
            _create(path, spill, memory_limit)
        connection = _connect(path, spill, memory_limit)
        try:
            _check_format(folder, connection)
            yield connection
        finally:
            connection.close()


def database_bytes(folder: Path) -> int:
    """The size of the database and its log."""
    paths = (folder / DATABASE_NAME, folder / LOG_NAME)
    return sum(path.stat().st_size for path in paths if path.exists())


def visible_damage(folder: Path) -> str | None:
    """What is wrong with the database, as far as a few bytes show; its file must not be in use."""
    with (folder / DATABASE_NAME).open("rb") as file:
        if file.read(len(MAGIC) + MAGIC_AT)[MAGIC_AT:] != MAGIC:
            return DATABASE_IS_DAMAGED
    with suppress(FileNotFoundError), (folder / LOG_NAME).open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(size - ZEROS, 0))
        # DuckDB ends an entry with other bytes.
        if log.read() == bytes(ZEROS):
            return LOG_IS_DAMAGED
    return None


def rewrite_database(folder: Path, memory_limit: int | None = None) -> None:
    """Replaces the database by a copy of its rows, so that nothing is left of deleted ones.

    The copy lacks `PURGE_PENDING`. The caller has closed the database. A kill leaves either the one
    or the other.
    """
    path = folder / DATABASE_NAME
    access = access_of(path)
    with _spill_folder(folder) as spill, private_folder(folder, path.name) as aside:
        fresh = aside / path.name
        connection = _connect(None, spill, memory_limit)
        try:
            # A copy that is not complete is dropped; its log could be larger than the database.
            _attach(connection, fresh, "copied", "RECOVERY_MODE no_wal_writes")
            _attach(connection, path, "earlier")
            rows_of(connection, "COPY FROM DATABASE earlier TO copied")
            for table in tables():
                counts = (
                    f"SELECT (SELECT count(*) FROM earlier.{table}), count(*) FROM copied.{table}"
                )
                [(before, after)] = rows_of(connection, counts)
                if before != after:
                    raise MirrorError(
                        f"the mirror in {folder}: {after:,} of {before:,} rows of {table} were "
                        "copied; report this error"
                    )
            rows_of(connection, f"DELETE FROM copied.meta WHERE key = {quoted(PURGE_PENDING)}")
            # The earlier one's log would be applied to the copy.
            for name in ("copied", "earlier"):
                rows_of(connection, f"CHECKPOINT {name}")
                rows_of(connection, f"DETACH {name}")
        finally:
            connection.close()
        give_access(fresh, access)
        flush_file(fresh)
        (folder / LOG_NAME).unlink(missing_ok=True)
        fresh.replace(path)
        flush_directory(folder)


def make_log(folder: Path) -> None:
    """Creates DuckDB's log privately; DuckDB would use the umask, which may let everyone read."""
    path = folder / LOG_NAME
    if not path.exists():
        # DuckDB may have created it meanwhile.
        with suppress(FileExistsError):
            create(path).close()


@contextmanager
def _spill_folder(folder: Path) -> Iterator[Path]:
    spill = folder / SPILL_NAME
    # A killed sync may have left gigabytes of messages there.
    remove_folder(spill)
    # The folder protects DuckDB's files in it, whose mode is that of the umask.
    make_subfolder(spill)
    try:
        yield spill
    finally:
        remove_folder(spill)


def _connect(path: Path | None, spill: Path, memory_limit: int | None) -> DuckDBPyConnection:
    options = {"checkpoint_threshold": CHECKPOINT_AT, "temp_directory": str(spill)}
    connection = connect(None, options)
    try:
        limit = default_memory_limit(connection) if memory_limit is None else memory_limit
        rows_of(connection, f"SET memory_limit = '{limit}B'")
        _hide_progress(connection)
        if path is not None:
            _attach(connection, path, "mirror")
            rows_of(connection, "USE mirror")
    except BaseException:
        connection.close()
        raise
    return connection


def _hide_progress(connection: DuckDBPyConnection) -> None:
    """DuckDB shows a bar where Python is interactive, and a sync has its own."""
    # In a notebook without ipywidgets it is off, and to set it is an error.
    [(shown,)] = rows_of(connection, "SELECT current_setting('enable_progress_bar')")
    if shown:
        rows_of(connection, "SET enable_progress_bar = false")


def _attach(connection: DuckDBPyConnection, path: Path, name: str, *options: str) -> None:
    # The option is of the connection, not of the file.
    together = ", ".join((f"ROW_GROUP_SIZE {ROWS_A_GROUP}", *options))
    rows_of(connection, f"ATTACH {quoted(str(path))} AS {name} ({together})")


def _create(path: Path, spill: Path, memory_limit: int | None) -> None:
    # Created elsewhere and renamed, so that a kill leaves no partial database under its name.
    with private_folder(path.parent, path.name) as aside:
        fresh = aside / path.name
        connection = _connect(fresh, spill, memory_limit)
        try:
            for statement in create_statements(uuid4().hex):
                rows_of(connection, statement)
            rows_of(connection, "CHECKPOINT")
        finally:
            connection.close()
        give_like_folder(fresh, path.parent)
        flush_file(fresh)
        fresh.replace(path)
        flush_directory(path.parent)


def _check_format(folder: Path, connection: DuckDBPyConnection) -> None:
    duckdb = load_duckdb()
    try:
        found = rows_of(connection, "SELECT value FROM meta WHERE key = 'schema_version'")
    except (duckdb.CatalogException, duckdb.BinderException):
        found = []
    if not found:
        raise MirrorError(
            f"{folder} contains a {DATABASE_NAME} that backread did not create; sync into a new "
            "folder"
        )
    if found != [(str(FORMAT),)]:
        raise other_format(folder, found[0][0])


LARGEST_DEFAULT = 4 * 1000**3
LEAST_DEFAULT = 256 * 1000**2
SHARE = 0.25
DUCKDB_SHARE = 0.8
"""The share of the memory that is DuckDB's own default."""

LEAST = 100 * 1000**2
"""Below this, DuckDB cannot merge a batch."""

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)(?:B|BYTES)?", re.ASCII)
POWERS = ("", "K", "M", "G", "T")


def read_size(name: str, text: str) -> int:
    """Bytes from text such as ``"2GB"`` or ``"512MiB"``; ValueError for other text."""
    if (found := SIZE.fullmatch(text.strip().upper())) is None:
        raise ValueError(
            f"{name} must be bytes, or text such as '2GB' or '512MiB', not {text!r:.60}"
        )
    return int(float(found[1]) * (1024 if found[3] else 1000) ** POWERS.index(found[2]))


def read_memory_limit(value: object) -> int:
    """Bytes from a number or from text such as ``"2GB"`` or ``"512MiB"``.

    Raises ValueError for other text or less than 100 MB, TypeError for another type.
    """
    if isinstance(value, str):
        limit = read_size("memory_limit", value)
    elif isinstance(value, int) and not isinstance(value, bool):
        limit = value
    else:
        raise TypeError(
            "memory_limit must be a number of bytes, or text such as '2GB', not "
            f"{type(value).__name__}"
        )
    if not LEAST <= limit < 2**63:
        raise ValueError(f"memory_limit must be 100MB or more, not {value!r:.60}")
    return limit


def default_memory_limit(connection: DuckDBPyConnection) -> int:
    """A quarter of the memory, or of the cgroup's limit if that is less; at most 4 GB.

    ``connection`` is one without a limit: DuckDB finds out both on each platform.
    """
    [(own,)] = rows_of(connection, "SELECT current_setting('memory_limit')")
    memory = read_memory_limit(own) / DUCKDB_SHARE
    return int(min(max(memory * SHARE, LEAST_DEFAULT), LARGEST_DEFAULT))
