"""Restricts `Mirror.sql` to one statement that reads only the snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from backread.errors import MirrorError
from backread.mirror.store.engine import pattern, quoted, rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Only plain words, because a comment or string could hide the start of the explained statement.
EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s)?\s*(\([\w\s,]*\))?", re.IGNORECASE)
# The nodes of DuckDB's syntax tree, where quotation marks in strings are escaped.
NODE = re.compile(r'"type":"(\w+_NODE)"')
READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
# The call of a table function, with its name.
TABLE_FUNCTION = re.compile(
    r'"type":"TABLE_FUNCTION"(?:.*?"function_name":"((?:[^"\\]|\\.)*)")?', re.DOTALL
)
# An allowlist, because json_execute_serialized_sql and query run a text as SQL, others change
# settings or logs, and the next version of DuckDB may have more of them.
READING_FUNCTIONS = re.compile(
    r"(read|parquet|duckdb|pragma)_\w+|range|generate_series|unnest|repeat|repeat_row|summary|glob"
    r"|json_each|json_tree|query_table|histogram|histogram_values|sniff_csv|icu_calendar_names"
    r"|pg_timezone_names|test_all_types|test_vector_types",
    re.IGNORECASE,
)
RESTRICTED = re.compile("disabled (through|by) configuration|configuration has been locked")
UNRESTRICTED = "pass unrestricted=True to run any DuckDB statement with your permissions"


class RefusedQueryError(MirrorError):
    """A statement that is not allowed in the confined connection; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Mirror.sql {reason}; {UNRESTRICTED}")
        self.reason = reason


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

    DuckDB's restrictions alone let COPY, ATTACH and DROP through, and COPY overwrites the files of
    the snapshot.
    """
    statements = cursor.extract_statements(query)
    if not statements:
        raise RefusedQueryError("takes one statement, and the query is empty")
    if len(statements) != 1:
        raise RefusedQueryError(f"takes one statement, not {len(statements)}")
    name = statements[0].type.name
    if name == "EXPLAIN":
        # EXPLAIN ANALYZE executes the statement.
        explain = EXPLAIN.match(query)
        rest = query[explain.end() :].lstrip() if explain else ""
        if not rest[:1].isalpha():
            raise RefusedQueryError(
                "takes an EXPLAIN without a comment before the explained statement"
            )
        check_reads_only(cursor, rest)
    elif name == "MULTI":
        raise RefusedQueryError(
            "takes a PIVOT only with a list of columns, PIVOT … ON name IN ('a', 'b'): "
            "without one, DuckDB runs several statements"
        )
    elif name != "SELECT":
        raise RefusedQueryError(f"runs SELECT and EXPLAIN, not {name}")
    else:
        _check_parts(cursor, query)


def _check_parts(cursor: DuckDBPyConnection, query: str) -> None:
    """Refuses a SELECT with a part that writes, or that may run a text as SQL.

    As in ``WITH x AS (COPY …) SELECT 1`` and ``FROM query('WITH x AS (COPY …) …')``.
    """
    [(tree,)] = rows_of(cursor, "SELECT json_serialize_sql(?::VARCHAR)", [query])
    nodes = set(NODE.findall(tree))
    writing = sorted(nodes - READING_NODES)
    # A statement without nodes could not be taken apart.
    if writing or not nodes:
        named = ", ".join(each.split("_")[0] for each in writing) or "this statement"
        raise RefusedQueryError(f"runs SELECT and EXPLAIN, not {named}")
    for name in TABLE_FUNCTION.findall(tree):
        if READING_FUNCTIONS.fullmatch(name) is None:
            raise RefusedQueryError(f"calls only table functions that read, not {name}")
