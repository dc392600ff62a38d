"""Estimates rates and the time left from what has been done so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from time import monotonic

__all__ = ["Meter", "Speed"]

ROWS_OVER = 10.0
"""Seconds over which the rate of rows is smoothed."""

LISTS_OVER = 60.0
"""The same for lists, and so the time left; longer, because lists differ in length."""

LEAST_LISTS = 10
LEAST_SECONDS = 2.0
"""The minimum time before estimating how long the rest will take."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Rows a second, and the seconds left; None while there is too little data."""

    rate: float
    seconds_left: float | None


class _Rate:
    """Events a second, exponentially smoothed over ``over`` seconds."""

    def __init__(self, over: float) -> None:
        self._over = over
        self._events = 0.0
        self._seconds = 0.0

    def add(self, events: float, seconds: float) -> None:
        keep = exp(-seconds / self._over)
        self._events = self._events * keep + events
        self._seconds = self._seconds * keep + seconds

    @property
    def value(self) -> float:
        return self._events / self._seconds if self._seconds > 0 else 0.0


class Meter:
    """Measures one sync; work done before the run was resumed does not count."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._began = self._last = clock()
        self._rows = 0
        self._lists: int | None = None
        self._first_lists = 0
        self._row_rate = _Rate(ROWS_OVER)
        self._list_rate = _Rate(LISTS_OVER)

    def observe(self, rows: int, lists: int, lists_total: int | None) -> Speed:
        """The current speed, from the rows read and the lists done in this sync."""
        now = self._clock()
        passed, self._last = now - self._last, now
        if self._lists is None:
            # Lists done at the first call may be from before this sync.
            self._lists = self._first_lists = lists
        self._row_rate.add(rows - self._rows, passed)
        self._list_rate.add(lists - self._lists, passed)
        self._rows, self._lists = rows, lists
        return Speed(self._row_rate.value, self._left(now, lists, lists_total))

    def _left(self, now: float, lists: int, lists_total: int | None) -> float | None:
        enough = lists - self._first_lists >= LEAST_LISTS and now - self._began >= LEAST_SECONDS
        rate = self._list_rate.value
        if lists_total is None or not enough or rate <= 0:
            return None
        return max(0.0, (lists_total - lists) / rate)
