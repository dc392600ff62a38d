"""Texts of strangers, made harmless for terminals, for what reads lines, and for spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["escaped", "guarded", "plain", "plain_lines"]

# ISO 6429's control characters, some of which a terminal obeys, and what turns the direction of
# the text behind it (Unicode, UAX 9).
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# In JSON those below U+0020 are escaped anyway; marks of direction turn nothing, but are not seen.
UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# What spreadsheets take for a formula, with the wide forms and what some of them skip before it:
# blanks, and control characters (Calc drops NUL); the apostrophe, so that taking one away always
# gives the text back.
FORMULA = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200b\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20'\t\r]")


def plain(text: str) -> str:
    """The text on one line, with U+FFFD for what a terminal would obey."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(plain, text.split("\n")))


def escaped(json: str) -> str:
    """The same JSON, with what readers of lines and terminals obey as ``\\uXXXX``."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


def guarded(text: str, tell: Callable[[], None]) -> str:
    """The text with an apostrophe before what a spreadsheet would take for a formula."""
    if FORMULA.match(text) is None:
        return text
    tell()
    return f"'{text}"
