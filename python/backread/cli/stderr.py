"""Writes to stderr; all output of the command there goes through here."""

from __future__ import annotations

import sys

from backread._client.secret import redact_secret
from backread.cli.text import plain

__all__ = ["say", "say_lines"]


def say(line: str, *, named: bool = True) -> None:
    """Writes one line, ``backread: …`` unless not ``named``.

    Parts of it may be untrusted: from the service, a lock, a profile, the name of a folder.
    """
    words = " ".join(line.split())
    _write(f"backread: {words}" if named else words)


def say_lines(text: str) -> None:
    """Writes a text of several lines, such as a traceback."""
    for line in text.split("\n"):
        _write(line)


def _write(line: str) -> None:
    sys.stderr.write(f"{plain(redact_secret(line))}\n")
    sys.stderr.flush()
