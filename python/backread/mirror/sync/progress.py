"""How far a run has come: its estimated rates, and the file that tells other processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp
from pathlib import Path
from time import monotonic

from backread._files.access import read_file
from backread._files.dataclass_json import dataclass_from_json, to_json_value
from backread._files.json import parse_json
from backread._files.unfinished import Unfinished
from backread.mirror.store.folder import PROGRESS_NAME
from backread.mirror.sync.report import Mode, SyncProgress

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


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run over all users that is going on, or was killed.

    It is as of ``updated_at``, which is at most some seconds ago if the run is going on.

    ``run_id`` is its number in the mirror, ``mode`` that of the sync. ``started_at`` and
    ``updated_at`` are UTC. ``progress`` has the lists done and in all, the rate
    and the seconds left. ``error`` is what stopped the run; None if it is going on or was killed.
    """

    run_id: int
    mode: Mode
    started_at: datetime
    updated_at: datetime
    progress: SyncProgress
    error: str | None = None

    @property
    def lists_left(self) -> int | None:
        """The message lists that are not read yet, None if their number is unknown."""
        total = self.progress.lists_total
        return None if total is None else max(total - self.progress.lists, 0)

    @property
    def age(self) -> float:
        """Seconds since ``updated_at``: some seconds if the sync is going on."""
        return max((datetime.now(UTC) - self.updated_at).total_seconds(), 0.0)


def write_unfinished_run(folder: Path, run: UnfinishedRun) -> None:
    """Replaces the file. A disk that is full is not reported here."""
    with suppress(OSError), Unfinished(folder / PROGRESS_NAME) as fresh:
        fresh.file.write(json.dumps(to_json_value(run)).encode())


def forget_unfinished_run(folder: Path) -> None:
    """Removes the file, at the end of a run."""
    with suppress(OSError):
        (folder / PROGRESS_NAME).unlink(missing_ok=True)


def read_unfinished_run(folder: Path) -> UnfinishedRun | None:
    """What the file says, None if there is none or it is damaged."""
    try:
        document = parse_json(read_file(folder / PROGRESS_NAME))
        return dataclass_from_json(UnfinishedRun, document, "unfinished run")
    except (OSError, ValueError):
        return None
