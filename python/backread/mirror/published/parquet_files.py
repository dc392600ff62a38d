"""Writes Parquet files with the access of their folder, and links unchanged ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from backread._files.access import create
from backread.mirror.store.engine import quoted

if TYPE_CHECKING:
    from backread.mirror.store.store import Store

__all__ = ["ROWS_PER_GROUP", "link_file", "nullable", "row_group_rows", "write_parquet"]

ROWS_PER_GROUP = 8192
BYTES_PER_GROUP = 16 * 2**20
FEWEST_PER_GROUP = 128

LEVEL = 1
"""Of zstd. DuckDB's default, 3, takes a third more CPU time to publish files a tenth smaller."""


def write_parquet(store: Store, query: str, path: Path, group_rows: int) -> None:
    """Writes the rows of a query into a new file, without flushing it to the disk."""
    # DuckDB creates files with the umask's mode, but keeps the mode of an existing file.
    create(path).close()
    options = (
        f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {LEVEL}, "
        f"ROW_GROUP_SIZE {group_rows}, USE_TMP_FILE false"
    )
    store.rows(f"COPY ({query}) TO {quoted(str(path))} ({options})")


def nullable(query: str, columns: int) -> str:
    """The query, with columns that DuckDB takes for nullable even if none of their values is null.

    Otherwise the schema of a file would depend on its rows: readers that put files together, such
    as pyarrow, need the same one in each.
    """
    nulls = ", ".join(["NULL"] * columns)
    # No number is that large, but the optimizer does not know.
    return f"FROM ({query}) UNION ALL SELECT {nulls} WHERE random() > 2"


def row_group_rows(rows: int, row_bytes: int) -> int:
    """How many rows of this size to put into a row group: fewer if they are wide."""
    if not rows or row_bytes // rows <= BYTES_PER_GROUP // ROWS_PER_GROUP:
        return ROWS_PER_GROUP
    return max(FEWEST_PER_GROUP, BYTES_PER_GROUP * rows // row_bytes)


def link_file(source: Path, target: Path) -> bool:
    """Gives a file another name; returns False if it had to be copied, which is not flushed."""
    try:
        os.link(source, target, follow_symlinks=False)
    except (OSError, NotImplementedError):
        # Not every file system has hard links, and one allows only so many of a file.
        with source.open("rb") as original, create(target) as copy:
            shutil.copyfileobj(original, copy, 2**20)
        return False
    return True
