"""Makes untrusted text harmless for terminals and line readers."""

from __future__ import annotations

import re

__all__ = ["escaped", "plain", "plain_lines"]

# Control characters (ISO 6429), which terminals may obey, line separators, and characters that
# change the direction of text (Unicode UAX 9).
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# JSON escapes those below U+0020 anyway. Includes invisible direction marks.
UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """The text on one line, with U+FFFD for each control character."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_lines(text: str) -> str:
    """Like `plain`, but keeps line breaks."""
    return "\n".join(map(plain, text.split("\n")))


def escaped(json: str) -> str:
    """The JSON with control characters, line separators and direction marks as ``\\uXXXX``."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json)
