"""Decides from a mirror's earlier runs whether the next one must be full.

Does not import Airflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["full_is_due", "why_full"]


def full_is_due(folder: str, every: float | None, every_runs: int | None) -> str | None:
    """`why_full` for a mirror's runs at the current time; None if the next sync continues one."""
    if every is None and every_runs is None:
        return None
    runs = _runs(folder)
    # A partial run that became full now would read again what it has read.
    if runs and runs[-1][2] == "partial":
        return None
    began = [(mode, start) for mode, start, _ in runs]
    return why_full(began, datetime.now(UTC).timestamp(), every, every_runs)


def why_full(
    runs: Sequence[tuple[str, float]], now: float, every: float | None, every_runs: int | None
) -> str | None:
    """Why the run that begins now must be full, in words; None if it need not be.

    ``runs`` has the mode and the start (in seconds) of each earlier run, oldest first. ``every`` is
    in seconds from the start of one full run to the next: the run nearest to it is full, so that a
    schedule that starts slightly early does not skip a full run. ``every_runs=24`` makes one in 24
    runs full. If no run was full yet, this one is.
    """
    since_full = next((n for n, (mode, _) in enumerate(reversed(runs)) if mode == "full"), None)
    if since_full is None:
        return "this mirror has no full run yet"
    if every_runs is not None and since_full + 1 >= every_runs:
        return f"the last full run was {since_full + 1} runs ago, and one in {every_runs} is full"
    elapsed, last_gap = now - runs[-1 - since_full][1], now - runs[-1][1]
    if every is not None and elapsed + last_gap / 2 >= every:
        return f"{elapsed / 3600:.1f} hours after the last full run began"
    return None


def _runs(folder: str) -> list[tuple[str, float, str]]:
    """The mode, the start and the state of each published run over all users, oldest first."""
    from backread import Mirror
    from backread.mirror.manifest import read_manifest
    from backread.mirror.schema import ALL_USERS

    if read_manifest(Path(folder)) is None:
        return []
    query = f"SELECT mode, epoch(started_at), state FROM runs WHERE {ALL_USERS} ORDER BY run_id"
    return [
        (str(mode), float(began), str(state))
        for mode, began, state in Mirror(folder).sql(query).fetchall()
    ]
