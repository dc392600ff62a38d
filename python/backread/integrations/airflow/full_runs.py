"""When a mirror's next run is to be full, by the runs that it has behind it.

Nothing of Airflow's is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["full_is_due", "why_full"]


def full_is_due(folder: str, every: float | None, every_runs: int | None) -> str | None:
    """`why_full` for a mirror's finished runs, now."""
    if every is None and every_runs is None:
        return None
    return why_full(_finished_runs(folder), datetime.now(UTC).timestamp(), every, every_runs)


def why_full(
    runs: Sequence[tuple[str, float]], now: float, every: float | None, every_runs: int | None
) -> str | None:
    """Why the run that begins now is to be full, in words; None where it is not.

    ``runs`` has the mode of each run before, and when it began, in seconds, the oldest first.
    ``every`` is in seconds from the beginning of one full run to that of the next: the run that is
    nearest to it is full, so that schedules which start a moment early do not lose a turn.
    ``every_runs=24`` makes one of 24 runs full. A mirror without a full run has one now.
    """
    since_full = next((n for n, (mode, _) in enumerate(reversed(runs)) if mode == "full"), None)
    if since_full is None:
        return "no run of this mirror was full yet"
    if every_runs is not None and since_full + 1 >= every_runs:
        return f"it is one in {every_runs}, and the last full one is {since_full + 1} runs ago"
    elapsed, last_gap = now - runs[-1 - since_full][1], now - runs[-1][1]
    if every is not None and elapsed + last_gap / 2 >= every:
        return f"{elapsed / 3600:.1f} hours after the last full run began"
    return None


def _finished_runs(folder: str) -> list[tuple[str, float]]:
    from backread import Mirror
    from backread.mirror.manifest import read_manifest

    if read_manifest(Path(folder)) is None:
        return []
    query = "SELECT mode, epoch(started_at) FROM runs ORDER BY run_id"
    return [(str(mode), float(began)) for mode, began in Mirror(folder).sql(query).fetchall()]
