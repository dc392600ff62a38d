"""Writes to stderr; all output of the command there goes through here, also that on outages."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any, TextIO

from backread._client.secret import redact_secret
from backread._display.words import duration
from backread._progress.output import above_progress
from backread.cli.text import plain

__all__ = ["drop_stderr", "said_delays", "say", "say_lines", "wrapped"]

NARROWEST = 20
"""The fewest terminal cells that a line is wrapped to."""


LONG_WAIT = 10.0
"""Seconds; shorter waits are not mentioned."""


def say(line: str, *, named: bool = True) -> None:
    """Writes one line, ``backread: …`` unless not ``named``.

    Parts of it may be untrusted: from the service, a lock, a profile, the name of a folder.
    """
    words = plain(redact_secret(" ".join(line.split())))
    for each in wrapped(f"backread: {words}" if named else words, sys.stderr):
        _write(each)


def wrapped(text: str, stream: TextIO) -> list[str]:
    """The lines of a text on one line: one, or on a terminal as many as its width makes of it."""
    if not stream.isatty():
        return [text]
    # Nothing is broken within a word, so that paths and addresses can be copied.
    width = max(get_terminal_size().columns, NARROWEST)
    found = wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return found or [""]


def say_lines(text: str) -> None:
    """Writes a text of several lines, such as a traceback."""
    for line in text.split("\n"):
        _write(line)


def drop_stderr() -> None:
    """Drops what is written to stderr from now on."""
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _write(line: str) -> None:
    try:
        sys.stderr.write(above_progress(f"{plain(redact_secret(line))}\n"))
        sys.stderr.flush()
    except OSError:
        # A full disk, or a reader that is gone, does not stop what is only told here.
        drop_stderr()


class _Delays(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._until = 0.0
        """The end of the wait that was mentioned last."""

    def emit(self, record: logging.LogRecord) -> None:
        from backread._client.telemetry import OUTAGE_BEGAN, OUTAGE_ENDED

        if record.msg in (OUTAGE_BEGAN, OUTAGE_ENDED):
            say(record.getMessage())
            return
        fields: dict[str, Any] = vars(record)
        wait, status = fields.get("again_in"), fields.get("status")
        if wait is None or wait < LONG_WAIT or status is None:
            return
        # Requests in flight are refused as well, and share the wait.
        if record.created + wait > self._until + LONG_WAIT:
            self._until = record.created + wait
            say(
                f"the service answered {status}: the next attempt is in {duration(wait)}; "
                "Ctrl-C ends it"
            )


@contextmanager
def said_delays() -> Iterator[None]:
    """Writes a line when the service stops answering, when it answers again, and at a long wait."""
    logger = logging.getLogger("backread.http")
    handler, level = _Delays(), logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
