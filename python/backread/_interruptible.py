"""Runs work that a signal's handler must not meet, so that what the handler raises comes out.

Python runs handlers in the main thread. If that is in DuckDB, in the import of a module or in the
removal of a folder, their exception may be lost. So the work runs in another thread, while the main
one waits.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from queue import SimpleQueue
from threading import get_ident, main_thread
from typing import Generic, TypeAlias, TypeVar

Result = TypeVar("Result")
Queue: TypeAlias = "SimpleQueue[Callable[[], None]]"

SECONDS_BETWEEN = 0.2
"""How long Ctrl-C may take to be noticed on Windows, where it does not end a wait."""

SECONDS_BETWEEN_INTERRUPTIONS = 0.02
"""They are repeated, because one that comes between two statements has no effect."""

_queues: dict[int, Queue] = {}
"""The worker's queue by process, because threads do not survive a fork."""


def run_interruptibly(
    work: Callable[[], Result],
    interrupt: Callable[[], object],
    meanwhile: Callable[[], object] = lambda: None,
) -> Result:
    """Runs the work and returns its result, or raises what it or a signal handler raises.

    ``interrupt`` makes the work end soon, and may be called repeatedly. ``meanwhile`` is called
    every 0.2 s; an exception of it ends the work, too. The work has ended when this returns or
    raises. In another thread than the main one, it is run as it is.
    """
    return _run(work, interrupt, meanwhile)


def run_to_its_end(work: Callable[[], Result]) -> Result:
    """Runs short work to its end, and only then raises what a signal handler raised meanwhile."""
    return _run(work, None, lambda: None)


def _run(
    work: Callable[[], Result],
    interrupt: Callable[[], object] | None,
    meanwhile: Callable[[], object],
) -> Result:
    # While the interpreter ends, other threads do not run any more.
    ends = sys.is_finalizing()
    queue = None if ends or get_ident() != main_thread().ident else _worker()
    if queue is None:
        return work()
    call = _Call(work)
    try:
        queue.put(call.run)
        while not call.has_ended(SECONDS_BETWEEN):
            meanwhile()
    except BaseException as error:
        call.is_wanted = interrupt is None
        # Once more, because the handler may have run before the first time.
        queue.put(call.run)
        raised = error
        while True:
            try:
                if interrupt is not None:
                    interrupt()
                if call.has_ended(SECONDS_BETWEEN_INTERRUPTIONS):
                    break
            except BaseException as later:
                raised = later
        # Without cycles, what the frames hold is freed at once: a connection that was not closed,
        # because a second signal came just then, would keep its file from the next sync.
        call.forget()
        try:
            raise raised
        finally:
            del raised
    return call.result()


class _Call(Generic[Result]):
    """One work. Only a bare lock is safe here: a handler may raise in any line of Python."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self.is_wanted = True
        self._work = work
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self._ended = False
        self._running = allocate_lock()
        self._running.acquire()

    def run(self) -> None:
        """Runs the work, in the worker; does nothing the second time."""
        if self._ended:
            return
        try:
            if self.is_wanted:
                self._results.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            # What it holds is freed here, not while the caller goes on or the process ends.
            del self._work
            self._ended = True
            self._running.release()

    def has_ended(self, seconds: float) -> bool:
        """Waits for its end for this time at most, and returns whether it has come."""
        if not self._ended:
            self._running.acquire(timeout=seconds)
        return self._ended

    def result(self) -> Result:
        """What the work returned; raises what it raised."""
        try:
            if self._error is not None:
                raise self._error
            return self._results.pop()
        finally:
            self.forget()

    def forget(self) -> None:
        """Lets go of its result, and of its error, whose traceback has a frame of this call."""
        self._results.clear()
        self._error = None


def _worker() -> Queue | None:
    """The queue of this process's worker; None at its exit, when no thread can be started."""
    queue = _queues.get(os.getpid())
    if queue is None:
        queue = SimpleQueue()
        try:
            start_new_thread(_serve, (queue,))
        except RuntimeError:
            return None
        _queues[os.getpid()] = queue
    return queue


def _serve(queue: Queue) -> None:
    while True:
        queue.get()()
