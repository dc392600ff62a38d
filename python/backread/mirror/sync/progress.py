"""Estimates rates and the time left from what has been done so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from time import monotonic

SMOOTHED_OVER = 10.0
"""Seconds over which rows and requests a second are smoothed."""

LISTS_OVER = 60.0
"""The same for lists, and so the time left; longer, because lists differ in length."""

LEAST_LISTS = 10
LEAST_SECONDS = 2.0
"""The minimum time before estimating how long the rest will take."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Rows and requests a second, and the seconds left; None while there is too little data."""

    rate: float
    pace: float
    seconds_left: float | None


class _Rate:
    """Events a second, exponentially smoothed over ``over`` seconds."""

    def __init__(self, over: float) -> None:
        self._over = over
        self._before: int | None = None
        self._events = self._seconds = 0.0

    def observe(self, count: int, passed: float) -> float:
        """The rate, after this time and with this many events so far."""
        keep = exp(-passed / self._over)
        self._events = (
            self._events * keep + count - (count if self._before is None else self._before)
        )
        self._seconds = self._seconds * keep + passed
        self._before = count
        return self._events / self._seconds if self._seconds > 0 else 0.0


class Meter:
    """Measures one sync; work done before the run was resumed does not count."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._began = self._last = clock()
        self._rows, self._requests = _Rate(SMOOTHED_OVER), _Rate(SMOOTHED_OVER)
        self._lists = _Rate(LISTS_OVER)
        self._first_lists: int | None = None

    def observe(self, rows: int, requests: int, lists: int, lists_total: int | None) -> Speed:
        """The current speed, from what was read and the lists done in this sync."""
        now = self._clock()
        passed, self._last = now - self._last, now
        if self._first_lists is None:
            # Lists done at the first call may be from before this sync.
            self._first_lists = lists
        rate, pace = self._rows.observe(rows, passed), self._requests.observe(requests, passed)
        of_lists = self._lists.observe(lists, passed)
        enough = lists - self._first_lists >= LEAST_LISTS and now - self._began >= LEAST_SECONDS
        left = None
        if lists_total is not None and enough and of_lists > 0:
            left = max(0.0, (lists_total - lists) / of_lists)
        return Speed(rate, pace, left)
