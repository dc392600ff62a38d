"""Publishes the tables as a folder of Parquet files for readers; links what did not change.

The rows of ``users`` and ``messages`` are sorted by user and cut into files by ranges of users. The
files of the ranges in which a row changed are written again, the others are linked. One file is
written at a time, so that a publication needs memory for one file, however large the tables are.

The order makes a kill harmless: first the files, in a folder under a temporary name; then its
rename; then the link ``current``; only then are the keys of the changed rows deleted from the
database. The next sync redoes unfinished work and removes what was left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path

from backread._files.access import (
    create,
    flush_directory,
    flush_file,
    give_folder,
    make_subfolder,
)
from backread._files.unfinished import private_folder
from backread.mirror.published.manifest import (
    DataFile,
    Manifest,
    file_name,
    point_current,
    read_manifest,
    remove_unneeded,
    snapshot_name,
    snapshot_names,
    still_read,
    write_manifest,
)
from backread.mirror.published.views import PUBLISHED_TABLES, side_table_query, write_views_database
from backread.mirror.store.engine import from_microseconds, quoted
from backread.mirror.store.folder import PUBLISHED
from backread.mirror.store.schema import (
    ALL_USERS,
    CONTENT_TABLES,
    FORMAT,
    PROFILE,
    TECHNICAL,
    Column,
    Table,
)
from backread.mirror.store.store import Store

PUBLISHED_SEQUENCE = "published_sequence"
"""The key in ``meta`` of the number of the snapshot that was published last.

Another one is not of this database, but of a later or an earlier state of it: ``mirror.duckdb`` was
restored from a backup.
"""


ROWS_PER_GROUP = 8192
BYTES_PER_GROUP = 16 * 2**20
FEWEST_PER_GROUP = 128

LEVEL = 1
"""Of zstd. DuckDB's default, 3, takes a third more CPU time to publish files a tenth smaller."""

FILE_BYTES = 64 * 2**20
"""The approximate size in memory of the rows of a file, which bounds what a sort needs."""

MOST_FILES = 2
"""A table with this many times the files that its rows need is written in full."""

LOWEST = -(2**63)

BYTES_PER_VALUE = 8


def published_behind(store: Store) -> bool:
    """True if the newest finished work is not published, because the process was killed between."""
    if store.never_finished():
        return False
    manifest = read_manifest(store.folder)
    return (
        manifest is None
        or manifest.generation != store.generation
        or not _continues(store, manifest)
    )


def _continues(store: Store, manifest: Manifest) -> bool:
    """Whether the database published this snapshot last, and all of its files are whole."""
    return (
        manifest.mirror_id == store.meta("mirror_id")
        and store.meta(PUBLISHED_SEQUENCE) == str(manifest.sequence)
        and manifest.broken_file(store.folder) is None
    )


def publish(store: Store, *, keep_retired: bool = True) -> Manifest:
    """Writes a snapshot of the committed rows and swaps it in; requires the folder's lock.

    Args:
        store: The database.
        keep_retired: False removes all earlier snapshots at once, which readers may still have
            open; otherwise they stay for 15 minutes.
    """
    folder = store.folder
    directory = folder / PUBLISHED
    make_subfolder(directory)
    before = read_manifest(folder)
    published = int(store.meta(PUBLISHED_SEQUENCE) or 0)
    sequence = 1 + max([published, *map(int, snapshot_names(folder))])
    name = snapshot_name(sequence)
    with private_folder(directory, name) as aside:
        give_folder(aside, directory)
        snapshot = _Snapshot(store, aside, sequence, before)
        # Two threads took a quarter more CPU time for bodies of 200 bytes, a sixth more for 2 KB,
        # and 100 to 200 MB more memory, and were not faster.
        with store.in_one_thread():
            manifest = snapshot.write(keep_retired)
        flush_directory(aside)
        aside.rename(directory / name)
    try:
        flush_directory(directory)
        point_current(folder, name)
    finally:
        # The new one, if the disk is full. The rows of a forgotten user must be gone even if the
        # views cannot be written.
        remove_unneeded(folder)
    with store.transaction():
        for table in CONTENT_TABLES:
            store.rows(f"DELETE FROM {table.unpublished}")
        store.set_meta(PUBLISHED_SEQUENCE, str(sequence))
    write_views_database(store, manifest)
    return manifest


@dataclass
class _Snapshot:
    """Writes the folder of one snapshot, ``aside`` from its later place."""

    store: Store
    aside: Path
    sequence: int
    before: Manifest | None
    new: list[Path] = field(default_factory=list)

    @cached_property
    def held(self) -> dict[str, list[DataFile]]:
        """The files of the earlier snapshot, if they can be linked."""
        before = self.before
        return before.tables if before is not None and _continues(self.store, before) else {}

    def write(self, keep_retired: bool) -> Manifest:
        """Writes and flushes the files and the manifest, which is returned."""
        tables: dict[str, list[DataFile]] = {}
        for table in CONTENT_TABLES:
            tables[table.name] = self._content(table)
        for name, published in PUBLISHED_TABLES.items():
            tables[name] = self._side(name, published, side_table_query(name))
        if self.store.meta(PROFILE) is not None:
            query = f"SELECT value AS {PROFILE} FROM meta WHERE key = {quoted(PROFILE)}"
            tables[PROFILE] = self._side(PROFILE, ((PROFILE, "VARCHAR"),), query)
        # Flushed late, when most of the data is already on the disk and waiting costs little.
        for path in self.new:
            flush_file(path)
        for name in tables:
            flush_directory(self.aside / name)
        now = datetime.now(UTC)
        [(run_id, seen_at)] = self.store.rows(
            "SELECT max(run_id), epoch_us(max(ended_at) FILTER (mode <> 'quick')) FROM runs "
            f"WHERE state = 'finished' AND {ALL_USERS}"
        )
        manifest = Manifest(
            format=FORMAT,
            mirror_id=self.store.meta("mirror_id") or "",
            sequence=self.sequence,
            generation=self.store.generation,
            run_id=run_id or 0,
            seen_at=from_microseconds(seen_at),
            published_at=now,
            tables=tables,
            retired=_retired(self.before, now) if keep_retired else {},
        )
        write_manifest(self.aside, manifest)
        return manifest

    def _content(self, table: Table) -> list[DataFile]:
        """Writes the ranges of users in which a row changed, and links the others."""
        columns = table.columns + TECHNICAL
        make_subfolder(self.aside / table.name)
        files = []
        plan = plan_files(self.store, table, self.held.get(table.name, []))
        for number, each in enumerate(plan):
            name = file_name(table.name, self.sequence, number)
            if each.name:
                files.append(self._link(table.name, each, name))
                continue
            condition = within(table, each.low, each.high)
            rows = f"SELECT {_names(columns)} FROM {table.name} WHERE {condition}"
            query = f"FROM ({nullable(rows, len(columns))}) ORDER BY {table.order}"
            group_rows = _row_group_rows(each.rows, each.row_bytes)
            size = self._write(table.name, name, query, group_rows)
            files.append(replace(each, name=name, bytes=size))
        return files

    def _side(self, table: str, columns: tuple[Column, ...], query: str) -> list[DataFile]:
        """Writes a small table in full, or links its file if no row changed."""
        [(rows, digest)] = self.store.rows(
            # A sum, because equal rows would cancel each other in an exclusive or.
            f"SELECT count(*), coalesce(sum(hash({_names(columns)})::HUGEINT), 0)::VARCHAR "
            f"FROM ({query})"
        )
        make_subfolder(self.aside / table)
        name = file_name(table, self.sequence, 0)
        for file in self.held.get(table, []):
            if (file.rows, file.digest) == (rows, digest):
                return [self._link(table, file, name)]
        written = nullable(f"SELECT {_names(columns)} FROM ({query})", len(columns))
        size = self._write(table, name, written)
        return [DataFile(name, rows, size, digest=digest)]

    def _write(self, table: str, name: str, query: str, group_rows: int = ROWS_PER_GROUP) -> int:
        """Writes the rows of a query into a new file; returns its size."""
        path = self.aside / table / name
        # DuckDB creates files with the umask's mode, but keeps the mode of an existing file.
        create(path).close()
        options = (
            f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {LEVEL}, "
            f"ROW_GROUP_SIZE {group_rows}, USE_TMP_FILE false"
        )
        self.store.rows(f"COPY ({query}) TO {quoted(str(path))} ({options})")
        self.new.append(path)
        return path.stat().st_size

    def _link(self, table: str, file: DataFile, name: str) -> DataFile:
        """Gives a file of the earlier snapshot another name in this one."""
        if self.before is None:
            raise TypeError("only files of a snapshot can be linked")
        target = self.aside / table / name
        source = self.before.folder(self.store.folder) / table / file.name
        try:
            os.link(source, target, follow_symlinks=False)
        except (OSError, NotImplementedError):
            # Some file systems have no hard links, and each has a limit of links to a file.
            with source.open("rb") as original, create(target) as copy:
                shutil.copyfileobj(original, copy, 2**20)
            self.new.append(target)
        return replace(file, name=name)


def nullable(query: str, columns: int) -> str:
    """The query, with columns that DuckDB takes for nullable even if none of their values is null.

    Otherwise the schema of a file would depend on its rows: readers that put files together, such
    as pyarrow, need the same one in each.
    """
    nulls = ", ".join(["NULL"] * columns)
    # No number is that large, but the optimizer does not know.
    return f"FROM ({query}) UNION ALL SELECT {nulls} WHERE random() > 2"


def _row_group_rows(rows: int, row_bytes: int) -> int:
    """How many rows of this size to put into a row group: fewer if they are wide."""
    if not rows or row_bytes // rows <= BYTES_PER_GROUP // ROWS_PER_GROUP:
        return ROWS_PER_GROUP
    return max(FEWEST_PER_GROUP, BYTES_PER_GROUP * rows // row_bytes)


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(f'"{name}"' for name, _ in columns)


def _retired(before: Manifest | None, now: datetime) -> dict[str, datetime]:
    if before is None:
        return {}
    return still_read(before.retired, now) | {snapshot_name(before.sequence): now}


def plan_files(store: Store, table: Table, held: Sequence[DataFile]) -> list[DataFile]:
    """The files of the next snapshot, in the order of their ranges: held ones, and new ones.

    A new one, not written yet, has no name.

    Args:
        store: The database.
        table: The table to publish.
        held: Its files in the earlier snapshot; empty to write it in full.
    """
    needed = 1 + sum(each.row_bytes for each in held) // FILE_BYTES
    if not held or len(held) > MOST_FILES * needed:
        return _cut(store, table, None, None)
    changed = _changed(store, table, held)
    plan: list[DataFile] = []
    for is_changed, group in groupby(enumerate(held), lambda item: item[0] in changed):
        files = [file for _, file in group]
        plan += _cut(store, table, files[0].low, files[-1].high) if is_changed else files
    return plan


def _changed(store: Store, table: Table, held: Sequence[DataFile]) -> set[int]:
    """The positions of the files in whose range a row changed, came or went."""
    if not store.rows(f"SELECT 1 FROM {table.unpublished} LIMIT 1"):
        return set()
    user = table.user_column
    ranges = ", ".join(
        f"({at}, {LOWEST if each.low is None else each.low})" for at, each in enumerate(held)
    )
    found = store.rows(
        f"SELECT DISTINCT place FROM (SELECT DISTINCT {user} AS owner FROM {table.unpublished}) "
        f"ASOF JOIN (SELECT place::BIGINT AS place, low::BIGINT AS low FROM (VALUES {ranges}) "
        "AS ranges(place, low)) ON owner >= low"
    )
    return {place for (place,) in found}


def _cut(store: Store, table: Table, low: int | None, high: int | None) -> list[DataFile]:
    """Cuts a range into pieces of about `FILE_BYTES`; a user's rows are in one piece.

    One without rows is one piece all the same, so that a reader by path finds the columns.
    """
    user = table.user_column
    rows = f"{table.name} WHERE {within(table, low, high)}"
    other_bytes = BYTES_PER_VALUE * len(table.columns + TECHNICAL)
    found = store.rows(
        f"""
        WITH by_user AS (
            SELECT {user} AS owner, count(*) AS rows, sum({other_bytes} + text_bytes) AS bytes
            FROM {rows} GROUP BY ALL
        ), summed AS (
            SELECT *, sum(bytes) OVER (ORDER BY owner) - bytes AS before,
                sum(bytes) OVER () AS total
            FROM by_user
        ), cut AS (
            SELECT *, greatest(1, round(total / {FILE_BYTES})) AS pieces FROM summed
        )
        SELECT min(owner), sum(rows)::BIGINT, sum(bytes)::BIGINT
        FROM cut GROUP BY floor(before / total * pieces) ORDER BY 1
        """
    )
    found = found or [(low, 0, 0)]
    lows = [low, *(first for first, _, _ in found[1:]), high]
    return [
        DataFile("", rows, 0, size, low, high)
        for (_, rows, size), (low, high) in zip(found, pairwise(lows), strict=True)
    ]


def within(table: Table, low: int | None, high: int | None) -> str:
    """The SQL condition for the rows of the users from ``low`` up to ``high``."""
    user = table.user_column
    limits = [f"{user} >= {low}"] if low is not None else []
    limits += [f"{user} < {high}"] if high is not None else []
    return " AND ".join(limits) or "true"
