"""SQL expressions that turn the mirror's columns into what a format can hold."""

from __future__ import annotations

import re
from collections.abc import Iterable

from backread._client.columns import ATTRIBUTE, COLUMNS
from backread._files.spreadsheet import EXCEL_TIME
from backread.mirror.store.engine import quoted

Column = tuple[str, str]
"""Name and SQL type."""

TIMESTAMP = "TIMESTAMP WITH TIME ZONE"
TEXTS_OF_JSON = {
    *(each.name for columns in COLUMNS.values() for each in columns if each.kind == "dict"),
    *(each.name for each in ATTRIBUTE if each.kind == "dict"),
    # A rejected record.
    "json",
}
"""The columns and the fields of attributes that are stored as JSON text."""

NO_TEXT = re.compile(
    r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|DATE|TIME.*"
    r"|INTERVAL|BLOB"
)
"""The types of numbers, booleans, times and bytes."""

FRACTIONS = ("DOUBLE", "FLOAT")

ATTRIBUTES = f"STRUCT({', '.join(f'{each.name} VARCHAR' for each in ATTRIBUTE)})[]"
"""The type of a list of attributes, without the quotes of reserved names."""


def identifier(name: str) -> str:
    """The name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def selected(expressions: Iterable[str], query: str) -> str:
    """The query with these expressions over its columns."""
    return f"SELECT {', '.join(expressions)} FROM ({query})"


def is_nested(kind: str) -> bool:
    """Whether values of the type are lists, structs or maps."""
    return kind.endswith("[]") or kind.startswith(("STRUCT(", "MAP("))


def may_be_text(kind: str) -> bool:
    """Whether a value of the type may be any text; also that of a union or a variant."""
    return not is_nested(kind) and NO_TEXT.fullmatch(kind) is None


def as_text(column: Column) -> str:
    """The column as a scalar: times as ISO 8601 text in UTC, nested values as JSON text.

    Every time has microseconds, so that texts sort as times, and pandas sees one format.
    """
    name, kind = column
    value = identifier(name)
    if kind == TIMESTAMP:
        value = f"strftime({value} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')"
    elif kind == "BLOB":
        value = f"lower(hex({value}))"
    elif is_nested(kind):
        value = f"CAST(to_json({_parsed(column)}) AS VARCHAR)"
    return f"{value} AS {identifier(name)}"


def as_excel_text(column: Column) -> str:
    """Like `as_text`, but times as `excel_time` writes them."""
    name, kind = column
    if not kind.startswith("TIMESTAMP"):
        return as_text(column)
    in_utc = f"{identifier(name)} AT TIME ZONE 'UTC'" if kind == TIMESTAMP else identifier(name)
    return f"strftime({in_utc}, {quoted(EXCEL_TIME)}) AS {identifier(name)}"


def as_naive(column: Column) -> str:
    """Like `as_text`, but times as timestamps without a time zone, in UTC."""
    name, kind = column
    if kind == TIMESTAMP:
        return f"{identifier(name)} AT TIME ZONE 'UTC' AS {identifier(name)}"
    return as_text(column)


def as_json_value(column: Column) -> str:
    """The column for a JSON document: nested values, and JSON that is stored as text, as such."""
    name, kind = column
    if name in TEXTS_OF_JSON and kind == "VARCHAR":
        return f"{_json(identifier(name))} AS {identifier(name)}"
    if is_nested(kind) or kind in FRACTIONS:
        return f"{_parsed(column)} AS {identifier(name)}"
    return as_text(column)


def _parsed(column: Column) -> str:
    """The value with the JSON text in its attributes parsed, and null for a number JSON lacks."""
    name, kind = column
    if kind in FRACTIONS:
        # JSON has no NaN and no infinities (RFC 8259, section 6).
        return f"CASE WHEN isfinite({identifier(name)}) THEN {identifier(name)} END"
    if kind.replace('"', "") != ATTRIBUTES:
        return identifier(name)
    values = {each.name: f"item.{identifier(each.name)}" for each in ATTRIBUTE}
    values |= {each.name: _json(values[each.name]) for each in ATTRIBUTE if each.kind == "dict"}
    fields = ", ".join(f"{quoted(name)}: {value}" for name, value in values.items())
    return f"list_transform({identifier(name)}, lambda item: {{{fields}}})"


def _json(text: str) -> str:
    # Too deeply nested text stays text.
    return f"coalesce(TRY_CAST({text} AS JSON), to_json({text}))"
