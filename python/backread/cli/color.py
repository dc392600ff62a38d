"""Colour on a terminal; nothing needs it to be understood."""

from __future__ import annotations

from enum import StrEnum
from typing import IO

__all__ = ["Color", "Ink", "choose", "ink_for"]


class Color(StrEnum):
    """The values of ``--color``."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class _Choice:
    """What ``--color`` said; one per process, as the environment is."""

    mode = Color.AUTO


class Ink:
    """Marks text for a terminal with the sequences of ECMA-48, or leaves it unchanged."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def bold(self, text: str) -> str:
        """For headings and names."""
        return self._with("1", text)

    def dim(self, text: str) -> str:
        """For what matters less."""
        return self._with("2", text)

    def name(self, text: str) -> str:
        """For the name of an operator, next to bold ones of users."""
        return self._with("36", text)

    def mark(self, text: str) -> str:
        """For the words that a search found."""
        return self._with("1;33", text)

    def _with(self, codes: str, text: str) -> str:
        return f"\x1b[{codes}m{text}\x1b[0m" if self.on and text else text


def choose(mode: Color) -> None:
    """Sets what ``--color`` says for the rest of the process."""
    _Choice.mode = mode


def ink_for(stream: IO[str]) -> Ink:
    """Colour for a terminal that has it, unless NO_COLOR is set; or as ``--color`` says."""
    if _Choice.mode is not Color.AUTO:
        return Ink(_Choice.mode is Color.ALWAYS)
    if not stream.isatty():
        return Ink(False)
    from rich.console import Console

    console = Console(file=stream)
    # An old console of Windows shows the sequences as text.
    return Ink(
        console.color_system is not None and not console.no_color and not console.legacy_windows
    )
