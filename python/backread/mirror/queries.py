"""Restricts `Mirror.sql` to one statement that reads only the snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from backread.errors import MirrorError
from backread.mirror.engine import pattern, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["check_reads_only", "named_restriction", "restrictions"]

# Only plain words, because a comment or string could hide the start of the explained statement.
EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s)?\s*(\([\w\s,]*\))?", re.IGNORECASE)
RESTRICTED = re.compile("disabled (through|by) configuration|configuration has been locked")
UNRESTRICTED = "pass unrestricted=True to run any DuckDB statement with your permissions"


def restrictions(files: Path) -> list[str]:
    """The statements that restrict a connection to files below this folder."""
    return [
        # DuckDB compares with the requested names, which are patterns.
        f"SET allowed_directories = [{quoted(str(files.absolute()))}, {pattern(files)}]",
        "SET enable_external_access = false",
        # Must be last: it also locks itself.
        "SET lock_configuration = true",
    ]


@contextmanager
def named_restriction(unrestricted: bool) -> Iterator[None]:
    """Adds to DuckDB's refusal of a file or a setting how to allow it."""
    try:
        yield
    except Exception as error:
        if not unrestricted and RESTRICTED.search(str(error)):
            error.add_note(f"Mirror.sql can only read the snapshot; {UNRESTRICTED}")
        raise


def check_reads_only(cursor: DuckDBPyConnection, query: str) -> None:
    """Raises `MirrorError` unless it is one SELECT or EXPLAIN of one; DuckDB's error for bad SQL.

    DuckDB's restrictions alone let COPY, ATTACH and DROP through.
    """
    statements = cursor.extract_statements(query)
    if len(statements) != 1:
        raise MirrorError(f"Mirror.sql takes one statement, not {len(statements)}; {UNRESTRICTED}")
    name = statements[0].type.name
    if name == "EXPLAIN":
        # EXPLAIN ANALYZE executes the statement.
        explain = EXPLAIN.match(query)
        rest = query[explain.end() :].lstrip() if explain else ""
        if not rest[:1].isalpha():
            raise MirrorError(
                "Mirror.sql takes an EXPLAIN without a comment before the explained statement; "
                f"{UNRESTRICTED}"
            )
        check_reads_only(cursor, rest)
    elif name == "MULTI":
        raise MirrorError(
            "Mirror.sql takes a PIVOT only with a list of columns, PIVOT … ON name IN ('a', 'b'): "
            f"without one, DuckDB runs several statements; or {UNRESTRICTED}"
        )
    elif name != "SELECT":
        raise MirrorError(f"Mirror.sql runs SELECT and EXPLAIN, not {name}; {UNRESTRICTED}")
