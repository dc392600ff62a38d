"""The tables written out as Parquet for readers: what changed is written, the rest is kept.

A table is split into parts. Rows that change go into one file beside them until a part has so many
of them that it is written anew; so publishing costs what changed since the parts were written.

The order is what makes a kill harmless: files, then the manifest that names them, then the keys
of the changed rows leave the database. Whatever a kill leaves is written again by the next sync.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backread._files.access import create, flush_file, make_subfolder
from backread._files.unfinished import remove_leftovers
from backread.mirror.engine import file_list, from_microseconds, quoted, rows_of, scan
from backread.mirror.manifest import (
    FORMAT,
    PUBLISHED,
    Manifest,
    file_name,
    read_manifest,
    stored_files,
    write_manifest,
)
from backread.mirror.schema import (
    BUCKETS,
    CONTENT_TABLES,
    POSITION,
    PROFILE,
    SIDE_TABLES,
    TECHNICAL,
    Table,
    bucket_of,
)

if TYPE_CHECKING:
    from backread.mirror.store import Store

__all__ = ["publish", "published_behind"]

MINIMUM_PARTS = 16
ROWS_PER_PART = 131_072
ROWS_PER_SORT = 2_000_000
MOST_WRITERS = 4
CHANGED_SHARE = 0.02
"""A part is written anew when more than this share of its rows changed since it was.

More would make the rare publications that write parts rarer still, and each query slower.
"""

RETIRED_FOR = timedelta(minutes=15)
"""How long a file stays after the snapshot that dropped it, for readers that have it open."""


def published_behind(store: Store) -> bool:
    """True where a finished run is not in the published snapshot: a kill came in between."""
    [(newest,)] = store.rows("SELECT max(run_id) FROM runs WHERE state = 'finished'")
    if newest is None:
        return False
    manifest = read_manifest(store.folder)
    return (
        manifest is None
        or manifest.mirror_id != store.meta("mirror_id")
        or manifest.run_id < newest
        or not manifest.names() <= stored_files(store.folder / PUBLISHED).keys()
    )


def publish(store: Store) -> Manifest:
    """Writes and swaps in the snapshot of what is committed; the caller holds the folder's lock."""
    directory = store.folder / PUBLISHED
    make_subfolder(directory)
    remove_leftovers(directory)
    before = read_manifest(store.folder)
    stored = stored_files(directory)
    mirror_id = store.meta("mirror_id") or ""
    keep = before if _is_own(before, mirror_id) else None
    sequence = 1 + max([before.sequence if before else 0, *stored.values()])
    files: dict[str, list[str]] = {}
    for table in CONTENT_TABLES:
        names = (table.name, table.changed, table.replaced)
        held = {name: keep.files.get(name, []) if keep else [] for name in names}
        # A file that someone deleted is written again with its table.
        whole = stored.keys() >= {each for files_held in held.values() for each in files_held}
        files |= _write_table(store, directory, table, sequence, held if whole else {})
    for name in SIDE_TABLES:
        files[name] = [file_name(name, sequence)]
        _copy(store, f"SELECT * FROM {name} ORDER BY ALL", directory / files[name][0])
    if store.meta(PROFILE) is not None:
        files[PROFILE] = [file_name(PROFILE, sequence)]
        _copy(
            store,
            f"SELECT value AS {PROFILE} FROM meta WHERE key = {quoted(PROFILE)}",
            directory / files[PROFILE][0],
        )
    now = datetime.now(UTC)
    [(run_id, seen_at)] = store.rows(
        "SELECT max(run_id), epoch_us(max(ended_at)) FROM runs WHERE state = 'finished'"
    )
    manifest = Manifest(
        format=FORMAT,
        mirror_id=mirror_id,
        sequence=sequence,
        run_id=run_id or 0,
        seen_at=(from_microseconds(seen_at) or now).isoformat(),
        published_at=now.isoformat(),
        files=files,
        retired={},
    )
    _retire(manifest, before, now)
    # Later than each file's end: by then most of it is on the disk, and waiting costs little.
    for name in sorted(manifest.names() - stored.keys()):
        flush_file(directory / name)
    write_manifest(store.folder, manifest)
    with store.transaction():
        for table in CONTENT_TABLES:
            store.rows(f"DELETE FROM {table.unpublished}")
    _remove_unneeded(directory, manifest)
    return manifest


def _is_own(before: Manifest | None, mirror_id: str) -> bool:
    """True for a snapshot of this mirror in this format: what it holds need not be written."""
    return before is not None and (before.mirror_id, before.format) == (mirror_id, FORMAT)


def _write_table(
    store: Store, directory: Path, table: Table, sequence: int, held: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Writes what is not in the files that are held; gives the files of the new snapshot."""
    [(rows,)] = store.rows(f"SELECT count(*) FROM {table.name}")
    names = list(held.get(table.name, []))
    parts = _parts_for(rows, len(names))
    if len(names) != parts:
        names = [""] * parts
        _write_parts(store, directory, table, sequence, names, list(range(parts)))
        return {table.name: names}
    if not store.rows(f"SELECT 1 FROM {table.unpublished} LIMIT 1"):
        return dict(held)
    full = _gather_outdated(store, directory, table, held)
    _write_parts(store, directory, table, sequence, names, full)
    files = {table.name: names} | _write_outdated(store, directory, table, sequence, names)
    store.rows("DROP TABLE outdated")
    return files


def _gather_outdated(
    store: Store, directory: Path, table: Table, held: Mapping[str, list[str]]
) -> list[int]:
    """Puts the keys of the rows that the parts do not have as they are now into ``outdated``.

    Gives the parts to write anew for that; their rows are left out.
    """
    names = held[table.name]
    key = ", ".join(table.key)
    earlier = "".join(
        f" UNION SELECT {key} FROM {scan(directory, [name])}" for name in held[table.changed]
    )
    store.rows(
        f"CREATE OR REPLACE TEMP TABLE outdated AS SELECT {_part_of(table, len(names))} AS part, "
        f"{key} FROM (SELECT DISTINCT {key} FROM {table.unpublished}{earlier})"
    )
    changed = dict(store.rows("SELECT part, count(*) FROM outdated GROUP BY part"))
    touched = file_list(directory / names[part] for part in changed)
    sizes = {
        Path(path).name: rows
        for path, rows in store.rows(
            f"SELECT file_name, num_rows FROM parquet_file_metadata({touched})"
        )
    }
    full = [part for part in changed if changed[part] > CHANGED_SHARE * sizes[names[part]]]
    if full:
        store.rows(f"DELETE FROM outdated WHERE part IN ({', '.join(map(str, full))})")
    return full


def _write_outdated(
    store: Store, directory: Path, table: Table, sequence: int, parts: list[str]
) -> dict[str, list[str]]:
    """Writes the rows in ``outdated`` as they are now, and where their old state stands."""
    files: dict[str, list[str]] = {table.changed: [], table.replaced: []}
    if not store.rows("SELECT 1 FROM outdated LIMIT 1"):
        return files
    key = ", ".join(table.key)
    files[table.changed] = [file_name(table.changed, sequence)]
    _copy(
        store,
        f"SELECT {_columns(table)} FROM {table.name} SEMI JOIN outdated USING ({key}) "
        f"ORDER BY {table.order}",
        directory / files[table.changed][0],
    )
    [(replaced,)] = store.rows(
        f"CREATE OR REPLACE TEMP TABLE replaced AS SELECT {POSITION} AS position "
        f"FROM {scan(directory, parts)} SEMI JOIN outdated USING ({key})"
    )
    if replaced:
        files[table.replaced] = [file_name(table.replaced, sequence)]
        _copy(
            store,
            "SELECT position FROM replaced ORDER BY position",
            directory / files[table.replaced][0],
        )
    store.rows("DROP TABLE replaced")
    return files


def _write_parts(
    store: Store,
    directory: Path,
    table: Table,
    sequence: int,
    names: list[str],
    wanted: list[int],
) -> None:
    """Writes the wanted parts, and puts the files' names into ``names``."""
    if not wanted:
        return
    part_of = _part_of(table, len(names))
    columns = _columns(table)
    # Temporary, and yet for several connections: a database in memory, which this one shares.
    store.rows("ATTACH ':memory:' AS aside")
    try:
        for group in _groups(store, table, part_of, wanted):
            store.rows(
                f"CREATE OR REPLACE TABLE aside.leaving AS SELECT {part_of} AS part, {columns} "
                f"FROM {table.name} WHERE {part_of} IN ({', '.join(map(str, group))}) "
                f"ORDER BY part, {table.order}"
            )
            for part in group:
                names[part] = file_name(table.name, sequence, part, len(names))
            _copy_side_by_side(
                store,
                [
                    (
                        f"SELECT {columns} FROM aside.leaving WHERE part = {part}",
                        directory / names[part],
                    )
                    for part in group
                ],
            )
    finally:
        store.rows("DETACH aside")


def _part_of(table: Table, parts: int) -> str:
    return f"({bucket_of(table.user_column)} // {BUCKETS // parts})"


def _columns(table: Table) -> str:
    return ", ".join(f'"{name}"' for name, _ in table.columns + TECHNICAL)


def _parts_for(rows: int, held: int) -> int:
    """How many files a table of so many rows is split into: a power of two that never shrinks.

    It doubles when the rows do, so the work of writing all parts anew is spread over the growth.
    """
    parts = max(MINIMUM_PARTS, held)
    while parts < BUCKETS and rows > parts * ROWS_PER_PART:
        parts *= 2
    return parts


def _groups(store: Store, table: Table, part_of: str, wanted: list[int]) -> Iterator[list[int]]:
    """The parts in groups that are sorted together: bounded in rows, and so in memory."""
    sizes = dict(store.rows(f"SELECT {part_of}, count(*) FROM {table.name} GROUP BY 1"))
    group: list[int] = []
    size = 0
    for part in sorted(wanted):
        if group and size + sizes.get(part, 0) > ROWS_PER_SORT:
            yield group
            group, size = [], 0
        group.append(part)
        size += sizes.get(part, 0)
    if group:
        yield group


def _copy(store: Store, query: str, path: Path) -> None:
    store.rows(_copying(query, path))


def _copying(query: str, path: Path) -> str:
    # DuckDB would make the file by the umask; into one that is there it writes.
    create(path).close()
    options = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
    return f"COPY ({query}) TO {quoted(str(path))} ({options})"


def _copy_side_by_side(store: Store, copies: Sequence[tuple[str, Path]]) -> None:
    """Writes files of committed rows; a file is too small for DuckDB to use several cores on it."""

    def write(copy: tuple[str, Path]) -> None:
        with store.connection.cursor() as cursor:
            rows_of(cursor, _copying(*copy))

    pool = ThreadPoolExecutor(min(MOST_WRITERS, os.cpu_count() or 1))
    try:
        for written in [pool.submit(write, copy) for copy in copies]:
            written.result()
    finally:
        # On an error and on Ctrl-C: what has not begun is left.
        pool.shutdown(cancel_futures=True)


def _retire(manifest: Manifest, before: Manifest | None, now: datetime) -> None:
    if before is None:
        return
    names = manifest.names()
    manifest.retired.update(
        {
            name: moment
            for name, moment in before.retired.items()
            if datetime.fromisoformat(moment) > now - RETIRED_FOR
        }
    )
    manifest.retired.update(dict.fromkeys(before.names() - names, now.isoformat()))


def _remove_unneeded(directory: Path, manifest: Manifest) -> None:
    needed = manifest.names() | manifest.retired.keys()
    for name in stored_files(directory).keys() - needed:
        try:
            (directory / name).unlink()
        except OSError:
            # Windows keeps a file that a reader has open; the next publication tries again.
            continue
