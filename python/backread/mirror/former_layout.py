"""Reads mirrors that were published by format 2 or earlier, until their next sync.

A manifest named the Parquet files of one flat folder. Changed rows were in a file beside those of
the table, and another had the positions of the rows that they replaced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backread._files.access import read_file
from backread._files.dataclass_json import dataclass_from_json
from backread._files.json import parse_json
from backread.errors import MirrorError
from backread.mirror.engine import rows_of, scan
from backread.mirror.layout import PUBLISHED

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "FORMER_NAME",
    "FormerManifest",
    "former_columns",
    "former_files",
    "former_sources",
    "read_former",
]

FORMER_NAME = "manifest.json"
LAST_FORMAT = 2
DATA_FILE = re.compile(r"[a-z_]+(?:-\d+-of-\d+)?\.(\d+)\.parquet", re.ASCII)
NEEDED = ("users", "messages", "lists", "rejects", "runs")
SPLIT = ("users", "messages")

POSITION = "(CAST(file_index AS BIGINT) * 4294967296 | file_row_number)"
"""The SQL expression for the position of a row read from several Parquet files."""


@dataclass(frozen=True, slots=True)
class FormerManifest:
    """One published snapshot: the names of its files by table, in ``published``."""

    format: int
    mirror_id: str
    sequence: int
    run_id: int
    seen_at: str
    files: dict[str, list[str]]

    @property
    def seen(self) -> datetime:
        """``seen_at`` as an aware datetime."""
        return datetime.fromisoformat(self.seen_at)

    def folder(self, mirror: Path) -> Path:
        """The absolute path of the folder with the files."""
        return mirror.absolute() / PUBLISHED

    def paths(self, mirror: Path) -> dict[str, list[Path]]:
        """The files by table."""
        folder = self.folder(mirror)
        return {name: [folder / each for each in names] for name, names in self.files.items()}


def read_former(folder: Path, newest: int) -> FormerManifest | None:
    """The snapshot of the former layout, None if there is none.

    Raises `MirrorError` if it cannot be read, or if its format is higher than ``newest``.
    """
    path = folder / PUBLISHED / FORMER_NAME
    try:
        document = parse_json(read_file(path))
        written = document["format"]
        if isinstance(written, int) and LAST_FORMAT < written <= newest:
            # The note for older readers; the link beside it was removed.
            return None
        if not isinstance(written, int) or written <= LAST_FORMAT:
            manifest = dataclass_from_json(FormerManifest, document, "manifest")
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
        f"reads up to {newest}); upgrade backread"
    )


def _check(manifest: FormerManifest) -> None:
    if missing := sorted({*NEEDED} - manifest.files.keys()):
        raise ValueError(f"files has no {missing[0]}")
    for name in (name for names in manifest.files.values() for name in names):
        if DATA_FILE.fullmatch(name) is None:
            raise ValueError(f"{name!r:.80} is not the name of a snapshot file")
    datetime.fromisoformat(manifest.seen_at)


def former_files(folder: Path) -> dict[str, int]:
    """The data files of the former layout, with the number of the snapshot that wrote them."""
    try:
        names = [entry.name for entry in (folder / PUBLISHED).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found = ((name, DATA_FILE.fullmatch(name)) for name in names)
    return {name: int(match[1]) for name, match in found if match}


def former_sources(manifest: FormerManifest, mirror: Path) -> dict[str, str]:
    """The rows of each table, as SQL table expressions."""
    folder, files = manifest.folder(mirror), manifest.files
    sources = {}
    for name in files:
        if name in SPLIT:
            changed, replaced = files.get(f"{name}_changed", []), files.get(f"{name}_replaced", [])
            sources[name] = _joined(folder, files[name], changed, replaced)
        elif not name.endswith(("_changed", "_replaced")):
            sources[name] = scan(folder, files[name])
    return sources


def _joined(folder: Path, names: list[str], changed: list[str], replaced: list[str]) -> str:
    parts = scan(folder, names)
    if not changed:
        return parts
    stored = f"SELECT * FROM {parts}"
    if replaced:
        stored = (
            f"SELECT * EXCLUDE (position) FROM (SELECT *, {POSITION} AS position FROM {parts}) "
            f"ANTI JOIN {scan(folder, replaced)} USING (position)"
        )
    return f"({stored} UNION ALL BY NAME SELECT * FROM {scan(folder, changed)})"


def former_columns(
    connection: DuckDBPyConnection, manifest: FormerManifest, mirror: Path
) -> dict[str, set[str]]:
    """The columns that the files of each table have."""
    folder = manifest.folder(mirror)
    return {
        name: {
            each[0]
            for each in rows_of(connection, f"DESCRIBE SELECT * FROM {scan(folder, files[:1])}")
        }
        for name, files in manifest.files.items()
        if files
    }
