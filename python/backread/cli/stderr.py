"""What the command tells: notes and errors on stderr, summaries on stdout; quiet or verbose."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from threading import Event, Thread
from time import monotonic
from typing import Any, ClassVar, TextIO

from backread._client.secret import redact_secret
from backread._display.words import duration
from backread._progress.output import ProgressOutput, State, above_progress, find_output
from backread.cli.text import plain

NARROWEST = 20
"""The fewest terminal cells that a line is wrapped to."""

LOGGER = "backread.http"

LONG_WAIT = 10.0
"""Seconds; shorter waits are not mentioned."""

SECONDS_BETWEEN_LINES = 5.0

SECONDS_BEFORE_WAITING = 1.0
SECONDS_BETWEEN_DRAWINGS = 0.2


class Verbosity:
    """What ``-q`` and ``-v`` said; one per process, as the environment is."""

    quiet: ClassVar[bool] = False
    verbose: ClassVar[bool] = False


def say(line: str, *, named: bool = True, error: bool = False) -> None:
    """Writes one line to stderr, ``backread: …`` unless not ``named``; with ``-q`` only an error.

    Parts of it may be untrusted: from the service, a lock, a profile, the name of a folder.
    """
    if Verbosity.quiet and not error:
        return
    words = plain(redact_secret(" ".join(line.split())))
    say_lines("\n".join(_wrapped(f"backread: {words}" if named else words, sys.stderr)))


def say_lines(text: str) -> None:
    """Writes a text of several lines to stderr, such as a traceback."""
    for line in text.split("\n"):
        try:
            sys.stderr.write(above_progress(f"{plain(redact_secret(line))}\n"))
            sys.stderr.flush()
        except OSError:
            # A full disk, or a reader that is gone, does not stop what is only told here.
            drop_stderr()


def tell(summary: str) -> None:
    """Writes a summary of what was done to stdout, on one line; nothing with ``-q``."""
    if not Verbosity.quiet:
        sys.stdout.writelines(f"{plain(line)}\n" for line in _wrapped(summary, sys.stdout))
        sys.stdout.flush()


def _wrapped(text: str, stream: TextIO) -> list[str]:
    """The lines of a text on one line: one, or on a terminal as many as its width makes of it."""
    if not stream.isatty():
        return [text]
    # Nothing is broken within a word, so that paths and addresses can be copied.
    width = max(get_terminal_size().columns, NARROWEST)
    return wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    ) or [""]


def drop_stderr() -> None:
    """Drops what is written to stderr from now on."""
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def every_few_seconds(
    describe: Callable[[Any], str], phase_of: Callable[[Any], str] = lambda now: ""
) -> Callable[[Any], None]:
    """A progress callback that writes a line now and then, and for each phase, for logs."""
    said, phase = monotonic(), ""

    def tell_progress(now: Any) -> None:
        nonlocal said, phase
        if phase_of(now) != phase or monotonic() - said >= SECONDS_BETWEEN_LINES:
            said, phase = monotonic(), phase_of(now)
            say(describe(now), named=False)

    return tell_progress


class _Requests(logging.Handler):
    """Outages and long waits; every request, with its time, if verbose."""

    def __init__(self) -> None:
        super().__init__()
        self._until = 0.0
        """The end of the wait that was mentioned last."""

    def emit(self, record: logging.LogRecord) -> None:
        from backread._client.telemetry import OUTAGE_BEGAN, OUTAGE_ENDED

        if Verbosity.verbose:
            moment = datetime.fromtimestamp(record.created).astimezone()
            say_lines(f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03} {record.getMessage()}")
            return
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


def be_quiet_or_verbose(quiet: bool, verbose: bool) -> None:
    """Does what ``-q`` and ``-v`` say, before the command or after it."""
    Verbosity.quiet |= quiet
    Verbosity.verbose |= verbose
    if Verbosity.verbose:
        logging.getLogger(LOGGER).setLevel(logging.DEBUG)


@contextmanager
def logged_requests() -> Iterator[None]:
    """Writes outages, long waits and, if verbose, every request to stderr."""
    logger = logging.getLogger(LOGGER)
    handler, level = _Requests(), logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    Verbosity.quiet = Verbosity.verbose = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Shows ``what`` and the time it takes on stderr until the block ends, then removes the line.

    Nothing is shown in the first second, nor if stderr is not a terminal. Gives a function that
    changes ``what``.
    """
    output = None if Verbosity.quiet else find_output()
    shown = [what]
    if output is None:
        yield lambda _: None
        return
    done = Event()
    # A thread, because DuckDB answers in one call.
    thread = Thread(target=_draw, args=(output, shown, done), name="backread-waiting", daemon=True)
    thread.start()
    try:
        yield lambda now: shown.__setitem__(0, now)
    finally:
        done.set()
        thread.join()


def _draw(output: ProgressOutput, shown: list[str], done: Event) -> None:
    began = monotonic()
    if done.wait(SECONDS_BEFORE_WAITING):
        return
    while not done.is_set():
        output.show(State(shown[0], (duration(monotonic() - began),)))
        done.wait(SECONDS_BETWEEN_DRAWINGS)
    output.clear()
