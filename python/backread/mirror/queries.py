"""What `Mirror.sql` runs: one statement that reads the snapshot and nothing else."""

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

# Only plain words: a comment or a string could hide where the explained statement begins.
EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s)?\s*(\([\w\s,]*\))?", re.IGNORECASE)
RESTRICTED = re.compile("disabled (through|by) configuration|configuration has been locked")
UNRESTRICTED = "pass unrestricted=True to run any statement of DuckDB, with your rights"


def restrictions(files: Path) -> list[str]:
    """The statements after which a connection opens no files but those below this folder."""
    return [
        # DuckDB compares with the names as they are asked for, which are patterns.
        f"SET allowed_directories = [{quoted(str(files.absolute()))}, {pattern(files)}]",
        "SET enable_external_access = false",
        # The last one: it holds itself, too.
        "SET lock_configuration = true",
    ]


@contextmanager
def named_restriction(unrestricted: bool) -> Iterator[None]:
    """Adds to DuckDB's refusal of a file or a setting what allows it."""
    try:
        yield
    except Exception as error:
        if not unrestricted and RESTRICTED.search(str(error)):
            error.add_note(f"Mirror.sql reads the snapshot alone; {UNRESTRICTED}")
        raise


def check_reads_only(cursor: DuckDBPyConnection, query: str) -> None:
    """Raises `MirrorError` for anything but one SELECT or EXPLAIN of one; DuckDB's own for no SQL.

    DuckDB's restrictions alone let COPY, ATTACH and DROP through.
    """
    statements = cursor.extract_statements(query)
    if len(statements) != 1:
        raise MirrorError(
            f"Mirror.sql takes one statement, and these are {len(statements)}; {UNRESTRICTED}"
        )
    name = statements[0].type.name
    if name == "EXPLAIN":
        # EXPLAIN ANALYZE runs what it explains.
        explain = EXPLAIN.match(query)
        rest = query[explain.end() :].lstrip() if explain else ""
        if not rest[:1].isalpha():
            raise MirrorError(
                "Mirror.sql takes a plain EXPLAIN, with no comment before what it explains; "
                f"{UNRESTRICTED}"
            )
        check_reads_only(cursor, rest)
    elif name == "MULTI":
        raise MirrorError(
            "Mirror.sql takes a PIVOT with its columns only, PIVOT … ON name IN ('a', 'b'), for "
            f"without them it is several statements; or {UNRESTRICTED}"
        )
    elif name != "SELECT":
        raise MirrorError(f"Mirror.sql runs SELECT and EXPLAIN, not {name}; {UNRESTRICTED}")
