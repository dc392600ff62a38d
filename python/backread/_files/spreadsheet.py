"""Keeps spreadsheets from running text in CSV as a formula."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["BYTE_ORDER_MARK", "FORMULA", "guarded", "guards_in_words"]

BYTE_ORDER_MARK = "\ufeff"
"""Tells Excel that a file is UTF-8."""

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
