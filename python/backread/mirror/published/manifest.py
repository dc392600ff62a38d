"""Where a snapshot is, and its manifest ``snapshot.json``: its tables and their files.

``published/00000012/messages/*.parquet`` never changes once the link ``current`` names its folder,
so replacing the link replaces the whole snapshot atomically. Where there are no symbolic links, as
on Windows, a file ``CURRENT`` with the folder's name has the link's place.
"""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backread._files.access import create, flush_directory, flush_file, read_file
from backread._files.dataclass_json import dataclass_from_json, to_json_value
from backread._files.json import parse_json
from backread._files.unfinished import (
    Unfinished,
    remove_folder,
    remove_leftovers,
    unfinished_name,
)
from backread.errors import MirrorError
from backread.mirror.store.folder import CURRENT, CURRENT_FILE, PUBLISHED
from backread.mirror.store.schema import CONTENT_TABLES, FORMAT, SIDE_TABLES, other_format

SNAPSHOT = re.compile(r"\d{8}", re.ASCII)

SNAPSHOT_FILE = "snapshot.json"

RETIRED_FOR = timedelta(minutes=15)
"""How long a replaced snapshot stays, for readers that have its files open."""

PLAIN_NAME = re.compile(r"[a-z_]+(-\d+\.\d{8}\.parquet)?", re.ASCII)
"""Of a table or a data file."""

ATTEMPTS = 10
"""How often a reader follows the link anew if the snapshot was removed meanwhile."""

NEEDED = {*(table.name for table in CONTENT_TABLES), *SIDE_TABLES}


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file of a table.

    It has the rows of the users from ``low`` up to but not including ``high``, None for no limit.
    ``row_bytes`` is the approximate size of its rows in memory, ``bytes`` that of the file.
    ``digest`` summarizes the rows of a side table, to find out whether it changed.
    """

    name: str
    rows: int
    bytes: int
    row_bytes: int = 0
    low: int | None = None
    high: int | None = None
    digest: str | None = None

    def holds(self, user_id: int) -> bool:
        """True if rows of the user would be in this file."""
        return (self.low is None or self.low <= user_id) and (
            self.high is None or user_id < self.high
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """One published snapshot; ``tables`` are the files of each table, at least one.

    ``sequence`` counts the snapshots, ``generation`` the changes of the mirror that are to be
    published. ``run_id`` is the newest finished run in it, and ``seen_at`` the end of the newest
    finished run of all users (None before the first), which a row's null
    ``last_seen_at`` means. ``retired`` are earlier snapshots that a reader may still have open,
    with the time when they were replaced.
    """

    format: int
    mirror_id: str
    sequence: int
    generation: int
    run_id: int
    seen_at: datetime | None
    published_at: datetime
    tables: dict[str, list[DataFile]]
    retired: dict[str, datetime]

    def folder(self, mirror: Path) -> Path:
        """The absolute path of the snapshot's folder in the mirror's folder."""
        return mirror.absolute() / PUBLISHED / snapshot_name(self.sequence)

    def paths(self, mirror: Path) -> dict[str, list[Path]]:
        """The files by table."""
        folder = self.folder(mirror)
        return {
            name: [folder / name / each.name for each in files]
            for name, files in self.tables.items()
        }

    def broken_file(self, mirror: Path) -> Path | None:
        """A file that is missing, of another length or a symbolic link; None if all are whole.

        What is damaged within a file is not seen.
        """
        for table, paths in self.paths(mirror).items():
            for path, file in zip(paths, self.tables[table], strict=True):
                try:
                    found = path.lstat()
                except OSError:
                    return path
                is_linked = path.parent.is_symlink() or not stat.S_ISREG(found.st_mode)
                if is_linked or found.st_size != file.bytes:
                    return path
        return None

    def check_files(self, mirror: Path) -> None:
        """Raises `MirrorError` for a `broken_file`."""
        if (broken := self.broken_file(mirror)) is not None:
            raise MirrorError(
                f"the mirror in {mirror}: {broken} is missing, cut off or not a regular file; "
                "sync again to publish a new snapshot"
            )


def file_name(table: str, sequence: int, number: int) -> str:
    """The name of a data file: the table, a number, and the snapshot.

    No two snapshots have a name in common, not even of unchanged files. A reader by path who began
    with another snapshot finds no file, and fails instead of mixing the two.
    """
    return f"{table}-{number:04}.{snapshot_name(sequence)}.parquet"


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's published snapshot, None if there is none.

    Raises `MirrorError` if it cannot be read or has another format.
    """
    for attempt in range(ATTEMPTS):
        name = current_name(folder)
        if name is None:
            return None
        try:
            return _read(folder, name)
        except (FileNotFoundError, NotADirectoryError) as error:
            # Two publications may have passed since the link was read.
            if attempt + 1 == ATTEMPTS or current_name(folder) == name:
                raise _damaged(folder, name, error) from error
    return None


def _read(folder: Path, name: str) -> Manifest:
    directory = folder / PUBLISHED / name
    try:
        if not stat.S_ISDIR(directory.lstat().st_mode):
            raise ValueError("the snapshot is not a folder")
        document = parse_json(read_file(directory / SNAPSHOT_FILE))
        written = document["format"]
        if not isinstance(written, int) or written == FORMAT:
            manifest = dataclass_from_json(Manifest, document, "manifest")
            _check(manifest)
            return manifest
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise MirrorError(
            f"the mirror in {folder}: {directory / SNAPSHOT_FILE} cannot be read: {error}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, name, error) from error
    raise other_format(folder, written)


def _damaged(folder: Path, name: str, error: Exception) -> MirrorError:
    directory = folder / PUBLISHED
    return MirrorError(
        f"the mirror in {folder}: {directory / name / SNAPSHOT_FILE} is damaged ({error}); delete "
        f"{current_link(folder) or directory / CURRENT_FILE} and sync again"
    )


def _check(manifest: Manifest) -> None:
    """Raises ValueError for a manifest with files elsewhere, or without those of a table."""
    for name in NEEDED | manifest.tables.keys():
        if not manifest.tables.get(name):
            raise ValueError(f"the table {name!r:.80} has no files")
        for each in (name, *(file.name for file in manifest.tables[name])):
            if PLAIN_NAME.fullmatch(each) is None:
                raise ValueError(f"{each!r:.80} is not the name of a snapshot file")


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Writes the manifest into the folder of a snapshot that is being made, durably."""
    path = directory / SNAPSHOT_FILE
    with create(path) as file:
        file.write(json.dumps(to_json_value(manifest), indent=1).encode())
    flush_file(path)


def still_read(retired: dict[str, datetime], now: datetime) -> dict[str, datetime]:
    """Those of ``Manifest.retired`` that were replaced so recently that their files stay."""
    return {name: moment for name, moment in retired.items() if moment > now - RETIRED_FOR}


def remove_unneeded(folder: Path) -> None:
    """Removes the snapshots that a killed publication left before ``current`` named them.

    Also replaced ones whose readers had their time.
    """
    if not (folder / PUBLISHED).is_symlink():
        remove_leftovers(folder / PUBLISHED)
        for link in (folder / PUBLISHED).glob(f".{CURRENT}.*.unfinished"):
            link.unlink(missing_ok=True)
    try:
        manifest = read_manifest(folder)
    except MirrorError:
        # What is damaged is reported by who reads or publishes it.
        return
    stay: set[str] = set()
    if manifest is not None:
        retired = still_read(manifest.retired, datetime.now(UTC))
        stay = {snapshot_name(manifest.sequence), *retired}
    for name in snapshot_names(folder) - stay:
        # What Windows cannot remove yet, the next publication does.
        remove_folder(folder / PUBLISHED / name)


def snapshot_name(sequence: int) -> str:
    """The name of the folder of the snapshot with this number."""
    return f"{sequence:08}"


def snapshot_names(folder: Path) -> set[str]:
    """The names of all snapshot folders of a mirror, those that ``current`` never named too."""
    directory = folder / PUBLISHED
    try:
        entries = [] if directory.is_symlink() else list(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {each.name for each in entries if SNAPSHOT.fullmatch(each.name)}


def current_name(folder: Path) -> str | None:
    """The name of the published snapshot's folder; None if nothing was published.

    Raises `MirrorError` if the link names anything but a snapshot.
    """
    link, file = folder / PUBLISHED / CURRENT, folder / PUBLISHED / CURRENT_FILE
    try:
        name = str(link.readlink()) if link.is_symlink() else read_file(file).decode().strip()
    except (FileNotFoundError, NotADirectoryError):
        if not link.is_dir():
            return None
        raise MirrorError(
            f"the mirror in {folder}: {link} is not a link to a snapshot; copy mirrors with their "
            "symbolic links, or remove it and sync again"
        ) from None
    except (OSError, ValueError) as error:
        raise MirrorError(f"the mirror in {folder}: {link} cannot be read: {error}") from error
    if SNAPSHOT.fullmatch(name) is None:
        raise MirrorError(
            f"the mirror in {folder}: {link} is damaged (it names {name!r:.80}, which is not a "
            "snapshot); remove it and sync again"
        )
    return name


def current_link(folder: Path) -> Path | None:
    """The absolute path of the link to the published snapshot; None where it is a file."""
    link = folder.absolute() / PUBLISHED / CURRENT
    return link if link.is_symlink() else None


def point_current(folder: Path, name: str) -> None:
    """Publishes the snapshot folder of this name, atomically and durably."""
    directory = folder / PUBLISHED
    link = directory / CURRENT
    fresh = directory / unfinished_name(CURRENT)
    try:
        fresh.symlink_to(name)
    except (OSError, NotImplementedError):
        with Unfinished(directory / CURRENT_FILE) as file:
            file.file.write(f"{name}\n".encode())
        # Of a process that could make links, as on Windows.
        if link.is_symlink():
            link.unlink()
        return
    try:
        fresh.replace(link)
    finally:
        fresh.unlink(missing_ok=True)
    # Left from a file system without links; where case does not matter, it is the link itself.
    if not (directory / CURRENT_FILE).is_symlink():
        (directory / CURRENT_FILE).unlink(missing_ok=True)
    flush_directory(directory)
