"""Shows long output in the user's pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import IO

__all__ = ["write_paged"]

DEFAULT = "less -R"
"""``-R`` lets colours through and shows every other control character."""


def write_paged(lines: Iterable[str], *, allowed: bool = True) -> None:
    """Writes the lines to stdout, through a pager if that is a terminal and they do not fit on it.

    The pager is PAGER, or ``less -R``; an empty PAGER or ``cat``, or ``TERM=dumb``, means none. The
    lines are made while they are read, so that a long text shows at once.
    """
    rest = iter(lines)
    pager = _pager() if allowed and sys.stdout.isatty() else None
    if pager is not None:
        # The prompt of the shell needs a line as well.
        room = shutil.get_terminal_size().lines - 1
        first = list(islice(rest, room))
        following = next(rest, None) if len(first) == room else None
        rest = chain(first, () if following is None else (following,), rest)
        if following is not None:
            _page(pager, rest)
            return
    for line in rest:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _pager() -> list[str] | None:
    if os.environ.get("TERM") == "dumb":
        return None
    try:
        command = shlex.split(os.environ.get("PAGER", DEFAULT))
    except ValueError:
        # A quotation mark without its partner.
        return None
    if not command or command[0] == "cat" or shutil.which(command[0]) is None:
        return None
    return command


def _page(command: list[str], lines: Iterator[str]) -> None:
    sys.stdout.flush()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        # Names and bodies have any script, whatever the locale is. R as in `DEFAULT`, also for a
        # PAGER of just less.
        env={"LESSCHARSET": "utf-8", "LESS": "R", **os.environ},
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdin is not None
        # The user quit before the end.
        with suppress(BrokenPipeError):
            _feed(process.stdin, lines)
        while process.poll() is None:
            # Ctrl-C is for the pager, which gets it as well.
            with suppress(KeyboardInterrupt):
                process.wait()


def _feed(pager: IO[str], lines: Iterator[str]) -> None:
    try:
        # Ctrl-C ends the reading; what the pager has can still be looked at.
        with suppress(KeyboardInterrupt):
            pager.writelines(f"{line}\n" for line in lines)
    finally:
        pager.close()
