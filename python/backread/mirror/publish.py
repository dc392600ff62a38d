"""The tables written out as Parquet for readers: what changed is written anew, the rest is kept.

The order is what makes a kill harmless: files, then the manifest that names them, then the marks
in the database. Whatever a kill leaves is written again by the next sync.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backread.mirror.engine import from_microseconds, quoted
from backread.mirror.manifest import (
    FORMAT,
    PUBLISHED,
    Manifest,
    file_name,
    flush_file,
    read_manifest,
    stored_files,
    write_manifest,
)
from backread.mirror.schema import (
    BUCKETS,
    CONTENT_TABLES,
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
    directory.mkdir(exist_ok=True)
    before = read_manifest(store.folder)
    stored = stored_files(directory)
    mirror_id = store.meta("mirror_id") or ""
    keep = before if before is not None and before.mirror_id == mirror_id else None
    sequence = 1 + max([before.sequence if before else 0, *stored.values()])
    files: dict[str, list[str]] = {}
    for table in CONTENT_TABLES:
        held = keep.files.get(table.name, []) if keep else []
        # A file that someone deleted is written again with its table.
        held = held if stored.keys() >= set(held) else []
        files[table.name] = _write_table(store, directory, table, sequence, held)
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
    write_manifest(store.folder, manifest)
    with store.transaction():
        store.rows("DELETE FROM dirty")
    _remove_unneeded(directory, manifest)
    return manifest


def _write_table(
    store: Store, directory: Path, table: Table, sequence: int, held: list[str]
) -> list[str]:
    [(rows,)] = store.rows(f"SELECT count(*) FROM {table.name}")
    parts = _parts_for(rows, len(held))
    part_of = f"({bucket_of(table.user_column)} // {BUCKETS // parts})"
    if len(held) == parts:
        dirty = store.rows(
            f"SELECT DISTINCT bucket // {BUCKETS // parts} FROM dirty WHERE table_name = ?",
            [table.name],
        )
        wanted = [part for (part,) in dirty]
    else:
        wanted = list(range(parts))
    names = list(held) if len(held) == parts else [""] * parts
    if not wanted:
        return names
    columns = ", ".join(f'"{name}"' for name, _ in table.columns + TECHNICAL)
    for group in _groups(store, table, part_of, wanted):
        store.rows(
            f"CREATE OR REPLACE TEMP TABLE leaving AS SELECT {part_of} AS part, {columns} "
            f"FROM {table.name} WHERE {part_of} IN ({', '.join(map(str, group))}) "
            f"ORDER BY part, {table.order}"
        )
        for part in group:
            names[part] = file_name(table.name, sequence, part, parts)
            _copy(
                store,
                f"SELECT {columns} FROM leaving WHERE part = {part}",
                directory / names[part],
            )
    store.rows("DROP TABLE IF EXISTS leaving")
    return names


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
    store.rows(f"COPY ({query}) TO {quoted(str(path))} (FORMAT parquet, COMPRESSION zstd)")
    flush_file(path)


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
