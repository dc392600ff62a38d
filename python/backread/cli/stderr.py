"""Everything that the command says on stderr goes through here."""

from __future__ import annotations

import sys

from backread.cli.text import plain

__all__ = ["say"]


def say(line: str, *, named: bool = True) -> None:
    """Writes one line, ``backread: …`` unless not ``named``.

    Parts of it may come from anywhere: the service, a lock, a profile, the name of a folder.
    """
    words = plain(" ".join(line.split()))
    sys.stderr.write(f"backread: {words}\n" if named else f"{words}\n")
    sys.stderr.flush()
