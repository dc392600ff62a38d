"""Finishes a run in one transaction: missed rows, deleted rows, and its report."""

from __future__ import annotations

from datetime import UTC, datetime

from backread.mirror.deletions import mark_gone, note_missed
from backread.mirror.report import SyncReport
from backread.mirror.runs import Run, Spent, clear, report_of
from backread.mirror.store import Store

__all__ = ["finish"]


def finish(store: Store, run: Run, spent: Spent) -> SyncReport:
    """Closes the run; ``spent`` is the cost since its last commit."""
    now = datetime.now(UTC)
    with store.transaction():
        # A user's newest row is the last one written.
        store.rows(
            "DELETE FROM lists WHERE rowid NOT IN (SELECT max(rowid) FROM lists GROUP BY user_id)"
        )
        if not run.alone:
            note_missed(store, run)
        deleted = mark_gone(store, run, now) if run.mode == "full" else 0
        clear(store)
        store.rows(
            f"""
            UPDATE runs SET state = 'finished', ended_at = ?, requests = requests + ?,
                seconds = seconds + ?, outage_seconds = outage_seconds + ?,
                deleted = deleted + ?,
                certificate = coalesce(certificate, 'uncertified'),
                rejects = (SELECT count(*) FROM rejects WHERE run_id = {run.run_id}),
                lists_by_certificate = {_counted(run, "certificate")},
                lists_by_kind = {_counted(run, "kind")}
            WHERE run_id = {run.run_id}
            """,
            [now, spent.requests, spent.seconds, spent.outage_seconds, deleted],
        )
    run.requests += spent.requests
    return report_of(store, run.run_id)


def _counted(run: Run, column: str) -> str:
    return (
        f"(SELECT map_from_entries(list(({column}, rows) ORDER BY {column})) FROM "
        f"(SELECT {column}, count(*) AS rows FROM lists WHERE run_id = {run.run_id} "
        f"AND {column} IS NOT NULL GROUP BY ALL))"
    )
