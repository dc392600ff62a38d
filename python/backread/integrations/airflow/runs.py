"""Which runs of a mirror are full, and what is left of a task's budget.

Does not import Airflow.
"""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from backread.errors import MirrorError

if TYPE_CHECKING:
    from backread.mirror import SyncProgress

__all__ = ["Budget", "why_full"]

NO_TIME = 1e-6
"""For `Mirror.sync`, which takes no 0: it ends at once, and publishes what was committed."""

RUNS = "SELECT mode, epoch(started_at), state FROM runs WHERE scope IS NULL ORDER BY run_id"


def why_full(folder: str, every: float | None, now: float | None = None) -> str | None:
    """Why a run that begins now must be full, in words; None if it need not be.

    ``every`` is in seconds from the start of one full run to the next: the run nearest to it is
    full, so that a schedule that starts slightly early does not skip a full run. The mirror's own
    runs count, whatever started them. If none was full yet, this one is.
    """
    if every is None:
        return None
    runs = _runs(folder)
    # A partial run that became full now would read again what it has read.
    if runs and runs[-1][2] == "partial":
        return None
    full = [start for mode, start, _ in runs if mode == "full"]
    if not full:
        return "this mirror has no full run yet"
    now = datetime.now(UTC).timestamp() if now is None else now
    elapsed, last_gap = now - full[-1], now - runs[-1][1]
    if elapsed + last_gap / 2 >= every:
        return f"{elapsed / 3600:.1f} hours after the last full run began"
    return None


def _runs(folder: str) -> list[tuple[str, float, str]]:
    """The mode, the start and the state of each published run over all users, oldest first."""
    from backread import Mirror

    try:
        return Mirror(folder).sql(RUNS).fetchall()
    except MirrorError:
        # Nothing is published yet; for any other reason, the sync fails too.
        return []


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
            self._sent_before = now.run_requests
        self._sent = now.run_requests - self._sent_before
