"""Shows on a terminal that the command is busy, if it takes longer than a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from backread._display.words import duration
from backread._progress.output import ProgressOutput, State, find_output
from backread.cli.stderr import Verbosity

__all__ = ["waiting"]

SECONDS_BEFORE = 1.0
SECONDS_BETWEEN = 0.2


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
    if done.wait(SECONDS_BEFORE):
        return
    while not done.is_set():
        output.show(State(shown[0], (duration(monotonic() - began),)))
        done.wait(SECONDS_BETWEEN)
    output.clear()
