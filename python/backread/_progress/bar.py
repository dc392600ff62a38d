"""`progress`: shows how far a listing has come while it is read, and a sync while it runs."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, overload

from backread._client.listing import AsyncListing, Listing
from backread._display.words import duration
from backread._progress.output import State, Surface, find_surface
from backread._progress.text import sync_parts, walk_parts

if TYPE_CHECKING:
    from backread._client.operations import Walk
    from backread.mirror.report import SyncProgress
    from backread.models import WalkReport

__all__ = ["progress", "shown_sync"]

T = TypeVar("T")

SECONDS_BETWEEN = 0.2
"""How often a walk's progress is drawn."""

SECONDS_STILL = 600.0
"""A walk that has not moved for so long is no longer drawn: whoever read it may have left it."""

_drawings: weakref.WeakSet[_Drawing] = weakref.WeakSet()
"""Those under way. At the exit they end first: a thread must not hold stderr then."""


@overload
def progress(listing: Listing[T]) -> Listing[T]: ...
@overload
def progress(listing: AsyncListing[T]) -> AsyncListing[T]: ...
def progress(listing: Listing[T] | AsyncListing[T]) -> Listing[T] | AsyncListing[T]:
    """The same listing, whose walks show how far they have come while they are read.

    In a notebook it is a bar below the cell, in a terminal a line on stderr, elsewhere (stderr is a
    file or a pipe) nothing; no other package is needed. Whatever reads a listing reads this one,
    and shows it: ``for``, ``async for``, ``to_polars()``, ``polars.DataFrame(...)``. What is read,
    when, and which errors are raised is as without it; nothing is sent before the first item is
    asked for. ``listing.report`` is then the report of this reading. What a list's end is stays
    open where the service sends no ``total``, and for ``messages.all()``: the bar has no length
    then.

    For a sync there is ``mirror.sync(client, progress=True)``. TypeError for anything but a
    `Listing` or an `AsyncListing`.
    """
    if not isinstance(listing, Listing | AsyncListing):
        raise TypeError(
            f"progress takes a Listing or an AsyncListing, not {type(listing).__name__}; "
            "a sync shows its own with mirror.sync(client, progress=True)"
        )
    start = listing._start
    if not (isinstance(start, partial) and start.func is _ShownWalk):
        start = partial(_ShownWalk, start, listing._title)
    shown = type(listing)(listing._title, start, listing._as_dict)
    shown._original = listing
    return shown


@contextmanager
def shown_sync(
    tell: Callable[[SyncProgress], object] | None,
) -> Generator[Callable[[SyncProgress], object] | None, None, None]:
    """What to call after each commit of a sync that is shown: it calls ``tell`` too."""
    surface = find_surface()
    if surface is None:
        yield tell
        return
    latest: list[SyncProgress] = []

    def show(now: SyncProgress) -> None:
        latest[:] = [now]
        surface.show(_sync_state(now))
        if tell is not None:
            tell(now)

    surface.show(State("starting"))
    try:
        yield show
    except BaseException as error:
        parts = tuple(sync_parts(latest[-1])) if latest else ()
        surface.end(State("sync stopped", (*parts, type(error).__name__)))
        raise
    surface.end(State("synced", tuple(sync_parts(latest[-1])) if latest else ()))


def _sync_state(now: SyncProgress) -> State:
    done, total = (
        (now.users, now.users_total) if now.lists_total is None else (now.lists, now.lists_total)
    )
    # The users are counted while their lists are not known yet, and that is no measure of the rest.
    known = now.phase == "reading" and now.lists_total is not None
    return State(now.phase, tuple(sync_parts(now)), _fraction(done, total) if known else None)


def _fraction(done: int, total: int | None) -> float | None:
    return min(1.0, done / total) if total else None


class _ShownWalk:
    """A walk that shows how far it has come, from its first step until it ends or is stopped."""

    def __init__(self, start: Callable[[], Walk], title: str) -> None:
        self._walk = start()
        self._title = title
        self._drawing: _Drawing | None = None
        self._begun = False

    @property
    def report(self) -> WalkReport:
        return self._walk.report

    def next_items(self, as_dict: bool, blocking: bool) -> Any:
        self._begin()
        return self._walk.next_items(as_dict, blocking)

    def next_page(self, as_dict: bool, blocking: bool) -> Any:
        self._begin()
        return self._walk.next_page(as_dict, blocking)

    def next_page_of(self, as_dict: bool, blocking: bool) -> Any:
        self._begin()
        return self._walk.next_page_of(as_dict, blocking)

    def next_ids(self, blocking: bool) -> Any:
        self._begin()
        return self._walk.next_ids(blocking)

    def stop(self) -> None:
        self._walk.stop()
        if self._drawing is not None:
            self._drawing.end()

    def take_error(self) -> BaseException | None:
        return self._walk.take_error()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._begin()
        return self._walk.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._walk.__arrow_c_schema__()

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        if (surface := find_surface()) is not None:
            self._drawing = _Drawing(self._walk, self._title, surface)


class _Drawing:
    """Draws a walk from a thread of its own, so that it is seen while others read the walk.

    polars and pyarrow read an Arrow stream in one call, and a service may keep anybody waiting.
    """

    def __init__(self, walk: Walk, title: str, surface: Surface) -> None:
        self._walk = walk
        self._title = title
        # A walk over many lists adds up those that it has come to: that is no end to go by.
        self._one_list = title == "users" or title.startswith("messages of user ")
        self._surface = surface
        self._began = monotonic()
        self._left = threading.Event()
        self._lock = threading.Lock()
        self._ended = False
        surface.show(self._state())
        _drawings.add(self)
        # In the cell's context, by which a notebook knows whose output it is.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._draw,), name="backread-progress", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """The last line, once."""
        self._left.set()
        with self._lock:
            if not self._ended:
                self._ended = True
                self._surface.end(self._last())

    def join(self) -> None:
        """Ends it, and its thread."""
        self.end()
        self._thread.join()

    def _draw(self) -> None:
        requests, moved = 0, monotonic()
        while not self._left.wait(SECONDS_BETWEEN):
            report = self._walk.report
            if report.requests != requests:
                requests, moved = report.requests, monotonic()
            if report.ended_at is not None or monotonic() - moved > SECONDS_STILL:
                break
            with self._lock:
                if not self._ended:
                    self._surface.show(self._state())
        self.end()

    def _state(self) -> State:
        report = self._walk.report
        total = report.total_last if self._one_list else None
        parts = walk_parts(report, total)
        seconds = monotonic() - self._began
        if report.distinct and seconds > 1:
            parts.append(f"{report.distinct / seconds:,.0f} rows/s")
        return State(self._title, (*parts, duration(seconds)), _fraction(report.distinct, total))

    def _last(self) -> State:
        report = self._walk.report
        proved = report.certificate if report.ended_at is not None else "not read to its end"
        took = duration(monotonic() - self._began)
        return State(self._title, (*walk_parts(report, None), took, proved))


@atexit.register
def _end_all() -> None:
    for drawing in list(_drawings):
        drawing.join()
