"""What is left of a task's ``max_requests`` and ``max_seconds``.

Does not import Airflow.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backread.mirror import SyncProgress

__all__ = ["Budget"]

NO_TIME = 1e-6
"""For `Mirror.sync`, which takes no 0: it ends at once, and publishes what was committed."""


class Budget:
    """The budget of all syncs in one process of a task: there are several if it waits (429)."""

    def __init__(self, max_requests: int | None, max_seconds: float | None) -> None:
        self._max_requests = max_requests
        self._ends = None if max_seconds is None else monotonic() + max_seconds
        self._sent_before: int | None = None
        self._sent = 0

    def left(self) -> tuple[int | None, float | None]:
        """``max_requests`` and ``max_seconds`` of the next sync."""
        seconds = None if self._ends is None else max(self._ends - monotonic(), NO_TIME)
        if self._max_requests is None:
            return None, seconds
        requests = self._max_requests - self._sent
        return (requests, seconds) if requests > 0 else (1, NO_TIME)

    def observe(self, now: SyncProgress) -> None:
        """Counts the requests; the first call is before any, since a run has those of earlier."""
        if self._sent_before is None:
            self._sent_before = now.requests
        self._sent = now.requests - self._sent_before
