"""``chats.duckdb``: views over the published snapshot, for the DuckDB shell and other programs."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from pathlib import Path

from backread._files.access import access_of, flush_directory, flush_file, give_access
from backread._files.unfinished import private_folder, remove_folder
from backread.mirror.published.manifest import Manifest, current_link
from backread.mirror.published.views import view_statements
from backread.mirror.store.engine import attach_portable, connect, pattern, rows_of
from backread.mirror.store.folder import VIEWS_LOG_NAME, VIEWS_NAME
from backread.mirror.store.schema import READ_ALL
from backread.mirror.store.store import Store

WRITTEN = "views_database"
"""The key in ``meta`` of what identifies the definition that was written last."""


def write_views_database(store: Store, manifest: Manifest) -> None:
    """Writes the file, unless it is there with these views; the snapshot is already published."""
    path = store.folder.absolute() / VIEWS_NAME
    statements = _statements(store.folder, manifest)
    definition = hashlib.sha256("\n".join(statements).encode()).hexdigest()
    if path.is_file() and not path.is_symlink() and store.meta(WRITTEN) == definition:
        return
    access = access_of(path)
    with private_folder(path.parent, path.name) as aside:
        fresh = aside / path.name
        _create(fresh, statements)
        give_access(fresh, access)
        flush_file(fresh)
        try:
            # A program that changed the replaced file may have left its log.
            (path.parent / VIEWS_LOG_NAME).unlink(missing_ok=True)
            fresh.replace(path)
        except OSError:
            if os.name != "nt":
                raise
            # Windows cannot replace an open file; the next publication tries again.
            return
    flush_directory(path.parent)
    with store.transaction():
        store.set_meta(WRITTEN, definition)


def clear_views_database(store: Store) -> None:
    """Has the next publication write the file anew, without what other programs put into it."""
    # A DuckDB shell that was killed may have left rows here.
    remove_folder(store.folder / f"{VIEWS_NAME}.tmp")
    with store.transaction():
        store.drop_meta(WRITTEN)


def _statements(folder: Path, manifest: Manifest) -> list[str]:
    snapshot = current_link(folder) or manifest.folder(folder)
    sources = {
        name: f"read_parquet({_all_files(snapshot / name)}, hive_partitioning = false)"
        for name in manifest.tables
    }
    seen = f"(SELECT max(ended_at) FROM {sources['runs']} WHERE {READ_ALL})"
    return view_statements(sources, seen)


def _all_files(folder: Path) -> str:
    return f"{pattern(folder)[:-1]}/*.parquet'"


def _create(path: Path, statements: list[str]) -> None:
    with closing(connect(None)) as connection:
        attach_portable(connection, path, "chats")
        for each in ("USE chats", *statements, "CHECKPOINT chats", "USE memory", "DETACH chats"):
            rows_of(connection, each)
