"""Publishes the tables as Parquet files for readers; writes only what changed.

A table is split into parts. Changed rows go into one additional file until they are a large enough
share of a part for it to be rewritten, so the cost of publishing depends on the changes since then.

The order makes a kill harmless: first the files, then the manifest that names them; only then are
the keys of the changed rows deleted from the database. The next sync redoes unfinished work.
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
from backread.mirror.published_lists import side_table_query
from backread.mirror.schema import (
    ALL_USERS,
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
"""A part is rewritten when more than this share of its rows changed since it was written.

A larger share would make the already rare rewrites rarer, but each query slower.
"""

RETIRED_FOR = timedelta(minutes=15)
"""How long a dropped file stays, for readers that have it open."""


def published_behind(store: Store) -> bool:
    """True if the newest finished run is not published, because the process was killed between."""
    if not store.rows("SELECT 1 FROM runs WHERE state <> 'unfinished' LIMIT 1"):
        return False
    manifest = read_manifest(store.folder)
    return (
        manifest is None
        or manifest.mirror_id != store.meta("mirror_id")
        or manifest.generation != int(store.meta("generation") or 0)
        or not manifest.names() <= stored_files(store.folder / PUBLISHED).keys()
    )


def publish(store: Store) -> Manifest:
    """Writes a snapshot of the committed rows and swaps it in; requires the folder's lock."""
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
        # If a file was deleted, or lacks a later column, its table is rewritten.
        whole = stored.keys() >= {each for files_held in held.values() for each in files_held}
        reusable = whole and _has_columns(store, directory, table, held)
        files |= _write_table(store, directory, table, sequence, held if reusable else {})
    for name in SIDE_TABLES:
        files[name] = [file_name(name, sequence)]
        _copy(store, f"{side_table_query(name)} ORDER BY ALL", directory / files[name][0])
    if store.meta(PROFILE) is not None:
        files[PROFILE] = [file_name(PROFILE, sequence)]
        _copy(
            store,
            f"SELECT value AS {PROFILE} FROM meta WHERE key = {quoted(PROFILE)}",
            directory / files[PROFILE][0],
        )
    now = datetime.now(UTC)
    [(run_id, seen_at)] = store.rows(
        "SELECT max(run_id), epoch_us(max(ended_at)) FROM runs "
        f"WHERE state = 'finished' AND {ALL_USERS}"
    )
    manifest = Manifest(
        format=FORMAT,
        mirror_id=mirror_id,
        sequence=sequence,
        generation=int(store.meta("generation") or 0),
        run_id=run_id or 0,
        seen_at=(from_microseconds(seen_at) or now).isoformat(),
        published_at=now.isoformat(),
        files=files,
        retired={},
    )
    _retire(manifest, before, now)
    # Flushed late, when most of the data is already on the disk and waiting costs little.
    for name in sorted(manifest.names() - stored.keys()):
        flush_file(directory / name)
    write_manifest(store.folder, manifest)
    with store.transaction():
        for table in CONTENT_TABLES:
            store.rows(f"DELETE FROM {table.unpublished}")
    _remove_unneeded(directory, manifest)
    return manifest


def _is_own(before: Manifest | None, mirror_id: str) -> bool:
    """True for a snapshot of this mirror in this format, whose files can be reused."""
    return before is not None and (before.mirror_id, before.format) == (mirror_id, FORMAT)


def _has_columns(
    store: Store, directory: Path, table: Table, held: Mapping[str, list[str]]
) -> bool:
    names = [*held[table.name], *held[table.changed]]
    if not names:
        return False
    schemas = f"parquet_schema({file_list(directory / name for name in names)})"
    common = store.rows(
        f"SELECT name FROM {schemas} GROUP BY name HAVING count(DISTINCT file_name) = {len(names)}"
    )
    return {name for (name,) in common} >= {name for name, _ in table.columns + TECHNICAL}


def _write_table(
    store: Store, directory: Path, table: Table, sequence: int, held: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Writes what the existing files lack; returns the files of the new snapshot."""
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
    """Fills ``outdated`` with the keys of the rows whose current state is not in the parts.

    Returns the parts to rewrite instead, whose rows are left out.
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
    """Writes the current rows for the keys in ``outdated``, and the positions of the old ones."""
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
    """Writes the wanted parts, and stores the file names in ``names``."""
    if not wanted:
        return
    part_of = _part_of(table, len(names))
    columns = _columns(table)
    # Temporary tables belong to one connection; an attached in-memory database is shared.
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
    """How many files to split a table of ``rows`` rows into: a power of two that never shrinks.

    It doubles with the rows, which amortizes the cost of rewriting all parts.
    """
    parts = max(MINIMUM_PARTS, held)
    while parts < BUCKETS and rows > parts * ROWS_PER_PART:
        parts *= 2
    return parts


def _groups(store: Store, table: Table, part_of: str, wanted: list[int]) -> Iterator[list[int]]:
    """Groups of parts to sort together, limited in rows to limit memory."""
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
    # DuckDB creates files with the umask's mode, but keeps the mode of an existing file.
    create(path).close()
    options = "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false"
    return f"COPY ({query}) TO {quoted(str(path))} ({options})"


def _copy_side_by_side(store: Store, copies: Sequence[tuple[str, Path]]) -> None:
    """Writes files in parallel; one file is too small for DuckDB to use several cores."""

    def write(copy: tuple[str, Path]) -> None:
        with store.connection.cursor() as cursor:
            rows_of(cursor, _copying(*copy))

    pool = ThreadPoolExecutor(min(MOST_WRITERS, os.cpu_count() or 1))
    try:
        for written in [pool.submit(write, copy) for copy in copies]:
            written.result()
    finally:
        # After an error or Ctrl-C, copies that have not begun are dropped.
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
            # Windows cannot delete a file that a reader has open; the next publication retries.
            continue
