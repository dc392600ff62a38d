"""The manifest: one small file that names the Parquet files of the published snapshot.

Readers open the manifest and then the files it names. These never change, so replacing the
manifest replaces the whole snapshot atomically.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from backread._files.access import flush_directory, read_file
from backread._files.dataclass_json import dataclass_from_json
from backread._files.json import parse_json
from backread._files.unfinished import Unfinished
from backread.errors import MirrorError
from backread.mirror.schema import CONTENT_TABLES

__all__ = [
    "FORMAT",
    "PUBLISHED",
    "Manifest",
    "file_name",
    "read_manifest",
    "stored_files",
    "write_manifest",
]

FORMAT = 2
"""Incremented whenever the format changes; higher formats are refused, lower ones can be read."""

PUBLISHED = "published"
MANIFEST_NAME = "manifest.json"
# Ends with the number of the snapshot that wrote the file, so names are never reused.
DATA_FILE = re.compile(r"[a-z_]+(?:-\d+-of-\d+)?\.(\d+)\.parquet", re.ASCII)

NEEDED = (*(table.name for table in CONTENT_TABLES), "lists", "rejects", "runs")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One published snapshot.

    ``sequence`` counts the snapshots. ``run_id`` is the newest finished run in it, and ``seen_at``
    the end of that run (ISO 8601), which a row's null ``last_seen_at`` means. ``generation`` counts
    the states of the mirror that were to be published. ``files`` are names
    by table, those of a split table in the order of their parts; `Table.changed` and
    `Table.replaced` are separate tables. ``retired`` are files of earlier snapshots that a reader
    may still have open, with the time when they were replaced (ISO 8601).
    """

    format: int
    mirror_id: str
    sequence: int
    run_id: int
    seen_at: str
    published_at: str
    files: dict[str, list[str]]
    retired: dict[str, str]
    generation: int = 0

    @property
    def seen(self) -> datetime:
        """``seen_at`` as an aware datetime."""
        return datetime.fromisoformat(self.seen_at)

    def names(self) -> set[str]:
        """All files of the snapshot."""
        return {name for names in self.files.values() for name in names}


def file_name(table: str, sequence: int, part: int | None = None, parts: int = 1) -> str:
    """The name of a data file; ``part`` counts from 0 if the table is split."""
    split = "" if part is None else f"-{part:04}-of-{parts:04}"
    return f"{table}{split}.{sequence:08}.parquet"


def stored_files(directory: Path) -> dict[str, int]:
    """All data files in the directory, in a manifest or not, with their snapshot's number."""
    found = ((entry.name, DATA_FILE.fullmatch(entry.name)) for entry in directory.iterdir())
    return {name: int(match[1]) for name, match in found if match}


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's published snapshot, None if there is none.

    Raises `MirrorError` if it cannot be read or a newer backread wrote it.
    """
    path = folder / PUBLISHED / MANIFEST_NAME
    try:
        document = parse_json(read_file(path))
        written = document["format"]
        if not isinstance(written, int) or written <= FORMAT:
            manifest = dataclass_from_json(Manifest, document, "manifest")
            _check(manifest)
            return manifest
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise MirrorError(f"the mirror in {folder}: {path} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise MirrorError(
            f"the mirror in {folder}: {path} is damaged ({error}); delete only that file and sync "
            "again"
        ) from error
    raise MirrorError(
        f"the mirror in {folder} was published by a newer backread (format {written}, this one "
        f"reads up to {FORMAT}); upgrade backread"
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the manifest, atomically and durably."""
    directory = folder / PUBLISHED
    with Unfinished(directory / MANIFEST_NAME) as fresh:
        fresh.file.write(json.dumps(asdict(manifest), indent=1).encode())
        # The directory entries of the files it names must be on the disk first.
        flush_directory(directory)


def _check(manifest: Manifest) -> None:
    """Raises ValueError for a tampered manifest, such as one with files elsewhere."""
    if missing := sorted({*NEEDED} - manifest.files.keys()):
        raise ValueError(f"files has no {missing[0]}")
    for name in manifest.names() | manifest.retired.keys():
        if DATA_FILE.fullmatch(name) is None:
            raise ValueError(f"{name!r:.80} is not the name of a snapshot file")
    for moment in (manifest.seen_at, *manifest.retired.values()):
        datetime.fromisoformat(moment)
