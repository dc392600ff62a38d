"""CSV for spreadsheets: no text runs as a formula, and Excel reads times as times."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

BYTE_ORDER_MARK = "\ufeff"
"""Tells Excel that a file is UTF-8."""

EXCEL_TIME = "%Y-%m-%d %H:%M:%S"
"""The times that Excel reads in CSV, in UTC: a fraction would have a comma in some languages."""

FORMULA = (
    "[\\x00-\\x20\\x7f-\\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]*"
    "[=+\\-@\uff1d\uff0b\uff0d\uff20'\\t\\r]"
)
"""The start of a formula, as a regular expression that Python and RE2 (DuckDB) read alike.

A sign that begins a formula, full-width forms included, after white space and control characters
that some spreadsheets skip (Calc drops NUL). Includes the apostrophe, so that removing the first
one always restores the text.
"""

_formula = re.compile(FORMULA)


def excel_time(text: str) -> str:
    """``2026-11-30 08:15:00`` for a time in ISO 8601 in UTC; other text stays as it is."""
    try:
        return datetime.fromisoformat(text).strftime(EXCEL_TIME)
    except ValueError:
        return text


def guarded(text: str, tell: Callable[[], None]) -> str:
    """Prefixes what a spreadsheet would run as a formula with an apostrophe, and calls ``tell``."""
    if _formula.match(text) is None:
        return text
    tell()
    return f"'{text}"


def guards_in_words(guards: int) -> str:
    """The line for the user about this many prefixed cells."""
    cells = "1 cell begins" if guards == 1 else f"{guards:,} cells begin"
    return (
        f"{cells} with an apostrophe, so that no spreadsheet takes them for a formula; "
        "--raw-csv writes them as they are"
    )
