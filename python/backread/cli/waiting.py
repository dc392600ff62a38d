"""Shows on a terminal that the command is busy, if it takes longer than a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from backread._display.words import duration
from backread._progress.output import ProgressOutput, State, find_output

__all__ = ["waiting"]

SECONDS_BEFORE = 1.0
SECONDS_BETWEEN = 0.2


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Shows ``what`` and the time it takes on stderr until the block ends, then removes the line.

    Nothing is shown in the first second, nor if stderr is not a terminal.
    """
    output = find_output()
    if output is None:
        yield
        return
    done = Event()
    # A thread, because DuckDB answers in one call.
    thread = Thread(target=_draw, args=(output, what, done), name="backread-waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _draw(output: ProgressOutput, what: str, done: Event) -> None:
    began = monotonic()
    if done.wait(SECONDS_BEFORE):
        return
    while not done.is_set():
        output.show(State(what, (duration(monotonic() - began),)))
        done.wait(SECONDS_BETWEEN)
    output.clear()
