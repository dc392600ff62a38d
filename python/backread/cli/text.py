"""Makes untrusted text harmless for terminals, line readers and spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["escaped", "guarded", "plain", "plain_lines"]

# Control characters (ISO 6429), which terminals may obey, line separators, and characters that
# change the direction of text (Unicode UAX 9).
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# JSON escapes those below U+0020 anyway. Includes invisible direction marks.
UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# The start of a formula for spreadsheets, with full-width forms, after white space and control
# characters that some of them skip (Calc drops NUL). Includes the apostrophe, so that removing the
# first one always restores the text.
FORMULA = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200b\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20'\t\r]")


def plain(text: str) -> str:
    """The text on one line, with U+FFFD for each control character."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_lines(text: str) -> str:
    """Like `plain`, but keeps line breaks."""
    return "\n".join(map(plain, text.split("\n")))


def escaped(json: str) -> str:
    """The JSON with control characters, line separators and direction marks as ``\\uXXXX``."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


def guarded(text: str, tell: Callable[[], None]) -> str:
    """Prefixes what a spreadsheet would run as a formula with an apostrophe, and calls ``tell``."""
    if FORMULA.match(text) is None:
        return text
    tell()
    return f"'{text}"
