"""``--version``, which needs none of the extras."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

__all__ = ["version_line"]


def version_line() -> str:
    """The versions that a report of a bug needs, on one line."""
    from backread import __version__

    try:
        duckdb = f"DuckDB {version('duckdb')}"
    except PackageNotFoundError:
        duckdb = "no DuckDB"
    return f"backread {__version__} (Python {platform.python_version()}, {duckdb})"
