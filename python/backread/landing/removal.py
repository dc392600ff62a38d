"""Removes users from the files of a landing folder; see `backread.mirror.Mirror.forget`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from backread._files.unfinished import is_unfinished
from backread.errors import LandingError
from backread.landing.manifest import ATTEMPT, as_text, manifest_name, runs
from backread.landing.storage import Folder, Storage, require

LANDING_FILE = re.compile(r"run=[0-9A-Za-z-]+/plan\.json|manifests/\d{8}\.json", re.ASCII)

USER_COLUMNS = ("user_id", "id")
"""The column with the user's id, of messages and of users."""


class UsersFound:
    """The rows of some users in a landing folder.

    ``user_ids`` are those of them who have rows there, ``rows`` and ``files`` how many.
    """

    def __init__(self, storage: Storage, wanted: Sequence[int]) -> None:
        self._storage = storage
        self._wanted = wanted
        self._found: dict[str, tuple[str, int]] = {}
        """By file: its column with ids, and how many rows are theirs."""
        self.user_ids: set[int] = set()

    @property
    def rows(self) -> int:
        """The rows of these users in all files."""
        return sum(rows for _, rows in self._found.values())

    @property
    def files(self) -> int:
        """The files with rows of these users."""
        return len(self._found)

    def look_into(self, name: str) -> None:
        """Counts the users' rows in a file."""
        with self._storage.named(name, "read"), self._open(name) as file:
            column = next((each for each in USER_COLUMNS if each in file.schema_arrow.names), None)
            if column is None:
                raise LandingError(
                    f"the landing folder {self._storage.folder}: {name} has no column of user ids; "
                    "move it elsewhere"
                )
            rows = 0
            for group in range(file.num_row_groups):
                ids = file.read_row_group(group, columns=[column]).column(0)
                hits = ids.filter(self._are_wanted(ids))
                rows += len(hits)
                self.user_ids.update(hits.unique().to_pylist())
        if rows:
            self._found[name] = column, rows

    def remove(self) -> None:
        """Writes the files again without these rows, then the manifests; each all or nothing."""
        for name, (column, _) in self._found.items():
            self._write_again(name, column)
        for run in runs(self._storage.folder):
            rows = self._rows_of(run.files)
            # Also after a removal that was killed before it came to the manifest.
            if rows is not None and rows != run.rows:
                text = as_text(replace(run, rows=rows))
                self._storage.write(manifest_name(run.number), text)

    def _write_again(self, name: str, column: str) -> None:
        parquet, compute = require("pyarrow.parquet"), require("pyarrow.compute")
        storage = self._storage
        with (
            storage.named(name, "written"),
            # Outside of what opens the file: Windows replaces no file that is open.
            storage.fresh(name) as path,
            self._open(name) as file,
            parquet.ParquetWriter(
                path, file.schema_arrow, filesystem=storage.filesystem, compression="zstd"
            ) as writer,
        ):
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                left = rows.filter(compute.invert(self._are_wanted(rows.column(column))))
                if left.num_rows:
                    writer.write_table(left, row_group_size=left.num_rows)

    def _rows_of(self, files: Iterable[str]) -> int | None:
        rows = 0
        for name in files:
            if self._storage.size(name) is None:
                return None
            with self._storage.named(name, "read"), self._open(name) as file:
                rows += file.metadata.num_rows
        return rows

    def _are_wanted(self, ids: Any) -> Any:
        values = require("pyarrow").array(self._wanted, require("pyarrow").int64())
        return require("pyarrow.compute").is_in(ids, value_set=values)

    def _open(self, name: str) -> Any:
        path, filesystem = self._storage.path(name), self._storage.filesystem
        return require("pyarrow.parquet").ParquetFile(path, filesystem=filesystem)


def find_users(folder: Folder, user_ids: Sequence[int]) -> UsersFound:
    """Looks for the users' rows in all files of a landing folder, committed or not.

    Removes the unfinished files of killed workers in a local folder.

    Raises:
        LandingError: It is no landing folder, a file cannot be read, or a worker is writing one.
    """
    storage = Storage(folder)
    files = storage.files_below()
    if not any(LANDING_FILE.fullmatch(name) for name in files):
        raise LandingError(
            f"{storage.folder} is not a landing folder; name the folder that was given to "
            "backread.landing.begin"
        )
    for directory in {name.rpartition("/")[0] for name in files}:
        storage.clean(directory)
    found = UsersFound(storage, user_ids)
    for name in storage.files_below():
        if is_unfinished(name.rpartition("/")[2]):
            raise LandingError(
                f"the landing folder {storage.folder}: {name} is being written; wait until all "
                "workers have ended, and remove it if it stays"
            )
        if ATTEMPT.fullmatch(name):
            found.look_into(name)
    return found
