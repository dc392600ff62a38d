"""Writes Delta tables with deltalake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backread._files.paths import shown
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.target import TargetError, WriterError

__all__ = ["check_delta_path", "load_deltalake", "write_delta"]

MISREAD = "%[]^|"


def load_deltalake() -> Any:
    """The module; if it is missing, an ImportError says how to install it."""
    try:
        import deltalake  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "deltalake":
            raise
        raise ImportError(
            "an export to Delta needs deltalake, which is not installed; "
            'run: pip install "backread[delta]"',
            name="deltalake",
        ) from None
    return deltalake


def check_delta_path(path: Path) -> None:
    """Raises `TargetError` for a path that deltalake reads as the syntax of a URI."""
    if found := sorted(set(MISREAD) & set(str(path))):
        raise TargetError(
            f"{shown(path)} has {' and '.join(found)} in its path, which deltalake cannot write; "
            "choose another"
        )


def write_delta(job: Job, table: TableQuery, path: Path) -> None:
    """One table as a Delta table, with the types of the mirror, batch by batch."""
    deltalake = load_deltalake()
    job.check()
    try:
        rows = job.cursor.sql(table.query)
        deltalake.write_deltalake(str(path), rows, name=table.name)
    except deltalake.exceptions.DeltaError as error:
        raise WriterError(str(error)) from error
    finally:
        job.check()
