"""`progress`: adds a progress bar to a listing; also the progress bar of a sync."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from copy import copy
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, overload

from backread._client.listing import AsyncListing, Listing, stopped_by_caller
from backread._display.words import duration
from backread._progress.output import (
    ProgressOutput,
    State,
    export_parts,
    files_parts,
    find_output,
    sync_parts,
    walk_parts,
)

if TYPE_CHECKING:
    from backread._backread import NativePrivacy
    from backread._client.listing import Walk


T = TypeVar("T")

Callback: TypeAlias = Callable[[Any], object] | None
"""What a sync or an export tells its progress."""

SECONDS_BETWEEN = 0.2
"""The interval between updates of a walk's progress."""

SECONDS_STILL = 600.0
"""A walk without progress for this long is no longer drawn: its reader may have abandoned it."""

_displays: weakref.WeakSet[_Display] = weakref.WeakSet()
"""Active displays. They end before the interpreter exits: no thread may hold stderr then."""


@overload
def progress(listing: Listing[T]) -> Listing[T]: ...
@overload
def progress(listing: AsyncListing[T]) -> AsyncListing[T]: ...
def progress(listing: Listing[T] | AsyncListing[T]) -> Listing[T] | AsyncListing[T]:
    """Adds a progress bar to a listing; returns a listing that is used in the same way.

    The bar is below the cell in a notebook, a line on stderr in a terminal, and not shown elsewhere
    (stderr is a file or a pipe); no other package is needed. It works with everything that reads a
    listing. Requests and errors are unchanged; nothing is sent until the first item is requested.
    The original ``listing.report`` also reports this reading. The bar has no length if the service
    sends no ``total``, and for ``messages.all()``. For a sync, use
    ``mirror.sync(client, progress=True)``.

    Raises:
        TypeError: ``listing`` is neither a `Listing` nor an `AsyncListing`.

    Example:
        ``for user in progress(client.users.list()): ...``
    """
    if not isinstance(listing, Listing | AsyncListing):
        raise TypeError(
            f"progress takes a Listing or an AsyncListing, not {type(listing).__name__}; "
            "a sync shows its own with mirror.sync(client, progress=True)"
        )
    start = listing._start
    if not (isinstance(start, partial) and start.func is _ShownWalk):
        start = cast("Callable[[int | None], Walk]", partial(_ShownWalk, start, listing._title))
    shown = copy(listing)
    shown._start = start
    shown._original = listing
    return shown


def shown_sync(callback: Callback) -> AbstractContextManager[Callback]:
    """A callback that shows a sync and calls ``callback``, or ``callback`` if none can be shown."""
    return _shown(callback, _sync_state, "sync", "synced")


def shown_export(callback: Callback) -> AbstractContextManager[Callback]:
    """Like `shown_sync`, for an export."""
    return _shown(callback, _export_state, "export", "exported")


def shown_files(callback: Callback) -> AbstractContextManager[Callback]:
    """Like `shown_sync`, for attachments."""
    return _shown(callback, _files_state, "download", "fetched")


@contextmanager
def _shown(
    callback: Callback, state_of: Callable[[Any], State], what: str, done: str
) -> Generator[Callback, None, None]:
    output = find_output()
    if output is None:
        yield callback
        return
    latest: State | None = None

    def show(now: Any) -> None:
        nonlocal latest
        latest = state_of(now)
        output.show(latest)
        if callback is not None:
            callback(now)

    output.show(State("starting"))
    try:
        yield show
    except BaseException as error:
        if latest is None:
            output.clear()  # it never began: the error says enough
        else:
            output.end(State(f"{what} stopped", (*latest.parts, type(error).__name__)))
        raise
    output.end(State(done, () if latest is None else latest.parts))


def _sync_state(now: Any) -> State:
    # Until the lists are known, users are counted, which is no measure of the remaining work.
    known = now.phase == "reading" and now.lists_total is not None
    fraction = _fraction(now.lists, now.lists_total) if known else None
    return State(now.phase, tuple(sync_parts(now)), fraction)


def _export_state(now: Any) -> State:
    return State(now.table, tuple(export_parts(now)), _fraction(now.rows, now.rows_total))


def _files_state(now: Any) -> State:
    return State("files", tuple(files_parts(now)), _fraction(now.files, now.files_total))


def _fraction(done: int, total: int | None) -> float | None:
    return min(1.0, done / total) if total else None


class _ShownWalk:
    """A walk with a progress bar, from its first step until it ends or is stopped."""

    def __init__(
        self, start: Callable[[int | None], Walk], title: str, max_items: int | None
    ) -> None:
        self._walk = start(max_items)
        self._title = title
        self._display: _Display | None = None
        self._begun = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("next_"):
            self._begin()
        return getattr(self._walk, name)

    def stop(self) -> None:
        self._walk.stop()
        if self._display is not None:
            self._display.end()

    def arrow_stream(self, read_ahead: bool, privacy: NativePrivacy | None = None) -> object:
        self._begin()
        if (display := self._display) is None:
            return self._walk.arrow_stream(read_ahead, privacy)
        on_end = partial(display.join)
        # A reader such as a query with LIMIT may drop the stream before its end.
        weakref.finalize(on_end, display.stop)
        return self._walk.arrow_stream(read_ahead, privacy, on_end)

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        if (output := find_output()) is not None:
            self._display = _Display(self._walk, self._title, output)


class _Display:
    """Draws a walk's progress from a separate thread while the walk is read.

    polars and pyarrow read an Arrow stream in one call, and the service may be slow.
    """

    def __init__(self, walk: Walk, title: str, output: ProgressOutput) -> None:
        self._walk = walk
        self._title = title
        # A walk over many lists sums the totals of those it has reached, so the end is unknown.
        self._one_list = title == "users" or title.startswith("messages of user ")
        self._output = output
        self._began = monotonic()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._ended = False
        output.show(self._state())
        _displays.add(self)
        # The context tells the notebook which cell the output belongs to.
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._draw,), name="backread-progress", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """Draws the last state, once."""
        self._stopping.set()
        with self._lock:
            if not self._ended:
                self._ended = True
                self._output.end(self._last())

    def stop(self) -> None:
        """Lets the display's thread draw the last state, in the notebook's cell that it knows."""
        self._stopping.set()

    def join(self) -> None:
        """Ends the display and waits for its thread."""
        self.stop()
        self._thread.join()

    def _draw(self) -> None:
        requests, moved = 0, monotonic()
        while not self._stopping.wait(SECONDS_BETWEEN):
            report = self._walk.report
            if report.requests != requests:
                requests, moved = report.requests, monotonic()
            if report.ended_at is not None or monotonic() - moved > SECONDS_STILL:
                break
            with self._lock:
                if not self._ended:
                    self._output.show(self._state())
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
        proved: str = report.certificate
        if report.ended_at is None:
            proved = "not read to its end"
        elif stopped_by_caller(report):
            proved = "stopped at the limit"
        took = duration(monotonic() - self._began)
        return State(self._title, (*walk_parts(report, None), took, proved))


@atexit.register
def _end_all() -> None:
    for display in list(_displays):
        display.join()
