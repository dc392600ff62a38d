"""Publishes the tables as a folder of Parquet files for readers; links what did not change.

The rows of ``users`` and ``messages`` are sorted by user and cut into files by ranges of users. The
files of the ranges in which a row changed are written again, the others are linked. One file is
written at a time, so that a publication needs memory for one file, however large the tables are.

The order makes a kill harmless: first the files, in a folder under a temporary name; then its
rename; then the link ``current``; only then are the keys of the changed rows deleted from the
database. The next sync redoes unfinished work and removes what was left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backread._files.access import flush_directory, flush_file, give_folder, make_subfolder
from backread._files.unfinished import private_folder
from backread.mirror.published.layout import (
    current_name,
    point_current,
    remove_snapshot,
    snapshot_name,
    snapshot_names,
)
from backread.mirror.published.manifest import (
    DataFile,
    Manifest,
    file_name,
    read_manifest,
    remove_unneeded,
    still_read,
    write_manifest,
)
from backread.mirror.published.parquet_files import (
    ROWS_PER_GROUP,
    link_file,
    nullable,
    row_group_rows,
    write_parquet,
)
from backread.mirror.published.published_lists import PUBLISHED_TABLES, side_table_query
from backread.mirror.published.ranges import Kept, join_ranges, plan_files
from backread.mirror.published.views_database import write_views_database
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

if TYPE_CHECKING:
    from backread.mirror.store.store import Store

__all__ = ["publish", "published_behind"]

PUBLISHED_SEQUENCE = "published_sequence"
"""The key in ``meta`` of the number of the snapshot that was published last.

Another one is not of this database, but of a later or an earlier state of it: ``mirror.duckdb`` was
restored from a backup.
"""


def published_behind(store: Store) -> bool:
    """True if the newest finished work is not published, because the process was killed between."""
    if not store.rows("SELECT 1 FROM runs WHERE state <> 'unfinished' LIMIT 1"):
        return False
    manifest = read_manifest(store.folder)
    return (
        manifest is None
        or manifest.mirror_id != store.meta("mirror_id")
        or manifest.generation != store.generation
        or not _is_newest(store, manifest)
        or not manifest.is_whole(store.folder)
    )


def _is_newest(store: Store, manifest: Manifest) -> bool:
    """Whether the database published this snapshot last."""
    return store.meta(PUBLISHED_SEQUENCE) == str(manifest.sequence)


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
    sequence = 1 + max(
        [
            before.sequence if before else 0,
            int(store.meta(PUBLISHED_SEQUENCE) or 0),
            *map(int, snapshot_names(folder)),
        ]
    )
    remove_unneeded(folder)
    name = snapshot_name(sequence)
    with private_folder(directory, name) as aside:
        snapshot = _Snapshot(store, aside, directory, sequence, before)
        # Two threads took a quarter more CPU time for bodies of 200 bytes, a sixth more for 2 KB,
        # and 100 to 200 MB more memory, and were not faster.
        with store.in_one_thread():
            manifest = snapshot.write(keep_retired)
        give_folder(aside, directory)
        flush_directory(aside)
        aside.rename(directory / name)
    try:
        flush_directory(directory)
        point_current(folder, name)
    except BaseException:
        # As when the disk is full; a snapshot that was published stays.
        if current_name(folder) != name:
            remove_snapshot(folder, name)
        raise
    with store.transaction():
        for table in CONTENT_TABLES:
            store.rows(f"DELETE FROM {table.unpublished}")
        store.set_meta(PUBLISHED_SEQUENCE, str(sequence))
    # First: the rows of a forgotten user must be gone even if the views cannot be written.
    _remove_retired(folder, manifest)
    write_views_database(store, manifest)
    return manifest


class _Snapshot:
    """Writes the folder of one snapshot."""

    def __init__(
        self,
        store: Store,
        aside: Path,
        directory: Path,
        sequence: int,
        before: Manifest | None,
    ) -> None:
        self._store = store
        self._aside = aside
        self._directory = directory
        self._sequence = sequence
        self._before = before
        self._mirror_id = store.meta("mirror_id") or ""
        self._new: list[Path] = []
        self._held = self._reusable()

    def _reusable(self) -> dict[str, list[DataFile]]:
        """The tables of the earlier snapshot, if it is of this mirror and all files are there."""
        before = self._before
        if (
            before is not None
            and before.mirror_id == self._mirror_id
            and _is_newest(self._store, before)
            and before.is_whole(self._store.folder)
        ):
            return before.tables
        return {}

    def write(self, keep_retired: bool) -> Manifest:
        """Writes and flushes the files and the manifest, which is returned."""
        tables: dict[str, list[DataFile]] = {}
        for table in CONTENT_TABLES:
            tables[table.name] = self._content(table)
        for name, published in PUBLISHED_TABLES.items():
            tables[name] = self._side(name, published, side_table_query(name))
        if self._store.meta(PROFILE) is not None:
            query = f"SELECT value AS {PROFILE} FROM meta WHERE key = {quoted(PROFILE)}"
            tables[PROFILE] = self._side(PROFILE, ((PROFILE, "VARCHAR"),), query)
        # Flushed late, when most of the data is already on the disk and waiting costs little.
        for path in self._new:
            flush_file(path)
        for name in tables:
            flush_directory(self._aside / name)
        now = datetime.now(UTC)
        [(run_id, seen_at)] = self._store.rows(
            "SELECT max(run_id), epoch_us(max(ended_at)) FROM runs "
            f"WHERE state = 'finished' AND {ALL_USERS}"
        )
        seen = from_microseconds(seen_at)
        manifest = Manifest(
            format=FORMAT,
            mirror_id=self._mirror_id,
            sequence=self._sequence,
            generation=self._store.generation,
            run_id=run_id or 0,
            seen_at=None if seen is None else seen.isoformat(),
            published_at=now.isoformat(),
            tables=tables,
            retired=_retired(self._before, now) if keep_retired else {},
        )
        write_manifest(self._aside, manifest, self._directory)
        return manifest

    def _content(self, table: Table) -> list[DataFile]:
        """Writes the ranges of users in which a row changed, and links the others."""
        columns = table.columns + TECHNICAL
        self._make_folder(table.name)
        files = []
        plan = plan_files(self._store, table, self._held.get(table.name, []))
        for number, each in enumerate(plan):
            name = file_name(table.name, self._sequence, number)
            if isinstance(each, Kept):
                files.append(self._link(table.name, each.file, name))
                continue
            rows = f"SELECT {_names(columns)} FROM {table.name} WHERE {each.condition(table)}"
            size = self._write(
                table.name,
                name,
                f"FROM ({nullable(rows, len(columns))}) ORDER BY {table.order}",
                row_group_rows(each.rows, each.row_bytes),
            )
            files.append(DataFile(name, each.rows, size, each.row_bytes, each.low, each.high))
        return join_ranges(files)

    def _side(self, table: str, columns: tuple[Column, ...], query: str) -> list[DataFile]:
        """Writes a small table in full, or links its file if no row changed."""
        [(rows, digest)] = self._store.rows(
            # A sum, because equal rows would cancel each other in an exclusive or.
            f"SELECT count(*), coalesce(sum(hash({_names(columns)})::HUGEINT), 0)::VARCHAR "
            f"FROM ({query})"
        )
        self._make_folder(table)
        name = file_name(table, self._sequence, 0)
        for file in self._held.get(table, []):
            if (file.rows, file.digest) == (rows, digest):
                return [self._link(table, file, name)]
        written = nullable(f"SELECT {_names(columns)} FROM ({query})", len(columns))
        size = self._write(table, name, written)
        return [DataFile(name, rows, size, digest=digest)]

    def _make_folder(self, table: str) -> None:
        folder = self._aside / table
        folder.mkdir(0o700)
        give_folder(folder, self._directory)

    def _write(self, table: str, name: str, query: str, group_rows: int = ROWS_PER_GROUP) -> int:
        """Writes the rows of a query into a new file; returns its size."""
        path = self._aside / table / name
        write_parquet(self._store, query, path, group_rows)
        self._new.append(path)
        return path.stat().st_size

    def _link(self, table: str, file: DataFile, name: str) -> DataFile:
        """Gives a file of the earlier snapshot another name in this one."""
        if self._before is None:
            raise TypeError("only files of a snapshot can be linked")
        target = self._aside / table / name
        if not link_file(self._before.folder(self._store.folder) / table / file.name, target):
            self._new.append(target)
        return replace(file, name=name)


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(f'"{name}"' for name, _ in columns)


def _retired(before: Manifest | None, now: datetime) -> dict[str, str]:
    if before is None:
        return {}
    return still_read(before.retired, now) | {snapshot_name(before.sequence): now.isoformat()}


def _remove_retired(folder: Path, manifest: Manifest) -> None:
    kept = {snapshot_name(manifest.sequence), *manifest.retired}
    for name in snapshot_names(folder) - kept:
        remove_snapshot(folder, name)
