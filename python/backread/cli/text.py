"""Makes untrusted text harmless for terminals and line readers, and for Rich."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from shutil import get_terminal_size
from typing import IO, TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rich.console import Console


# Control characters (ISO 6429), which terminals may obey, line separators, and characters that
# change the direction of text (Unicode UAX 9).
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# JSON escapes those below U+0020 anyway. Includes invisible direction marks.
UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

UNLIMITED = 1_000_000
"""The width of what is no terminal: nothing is cut or wrapped there."""


def plain(text: str) -> str:
    """The text on one line, with U+FFFD for each control character."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def plain_lines(text: str) -> str:
    """Like `plain`, but keeps line breaks."""
    return "\n".join(map(plain, text.split("\n")))


def escaped(json: str) -> str:
    """The JSON with control characters, line separators and direction marks as ``\\uXXXX``."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


Color = StrEnum("Color", "AUTO ALWAYS NEVER")
"""The values of ``--color``."""


class Coloring:
    """What ``--color`` said; one per process, as the environment is."""

    choice: ClassVar[Color] = Color.AUTO


def console_for(stream: IO[str]) -> Console:
    """Rich's console without markup, emoji codes and highlighting: text stays as it is.

    NO_COLOR turns off bold as well, because bold is an escape sequence, too.
    """
    by_default = Color.NEVER if os.environ.get("NO_COLOR") else Color.AUTO
    choice = by_default if Coloring.choice is Color.AUTO else Coloring.choice
    from rich.console import Console

    columns, lines = get_terminal_size()
    return Console(
        file=stream,
        width=columns if stream.isatty() else UNLIMITED,
        # Without it, Rich takes a dumb terminal for one of 80 columns.
        height=lines,
        color_system=None if choice is Color.NEVER else "auto",
        force_terminal=True if choice is Color.ALWAYS else None,
        no_color=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
