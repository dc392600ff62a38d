"""Ends a run in one transaction: as finished, or as partial; and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from backread.mirror.published.status import AUDIT_ENDED, audit_sentence, evidence_sentence
from backread.mirror.published.views import count_odd_values
from backread.mirror.store.engine import from_microseconds
from backread.mirror.store.schema import RUNS
from backread.mirror.store.store import Store
from backread.mirror.sync.deletions import mark_gone, mark_messages_of_deleted, note_missed
from backread.mirror.sync.report import SyncFigures, SyncReport
from backread.mirror.sync.runs import (
    ADD_SPENT,
    UNFINISHED,
    Run,
    Spent,
    clear,
    keep_newest_lists,
    set_in_run,
)

# Those of a call are the difference that it made to its run.
FIGURES = tuple(
    each.name
    for each in fields(SyncFigures)
    if each.name not in ("started_at", "lists_by_certificate")
)

TIME = "TIMESTAMPTZ"

REPORTED = {each.name for each in fields(SyncReport)}
COLUMNS = {name: kind for name, kind in RUNS if name in REPORTED}
"""The fields of a report that are stored, with their SQL types."""


def figures_before(store: Store, run: Run) -> dict[str, Any]:
    """The figures of the run as a sync begins, without the lists that it will read again."""
    columns = dict(zip(FIGURES, FIGURES, strict=True)) | {
        "rejects": _rejects(run),
        "lists_by_kind": _counted("kind", f"{_of(run)} AND kind NOT IN ('unread', 'partial')"),
    }
    [values] = store.rows(
        f"SELECT {', '.join(columns.values())} FROM runs WHERE run_id = ?", [run.run_id]
    )
    return dict(zip(columns, values, strict=True))


def of_this_sync(report: SyncReport, before: Mapping[str, Any], started_at: datetime) -> SyncReport:
    """The report of a sync that began when its run had the figures ``before``."""

    def rest(now: Any, then: Any) -> Any:
        return dict(Counter(now) - Counter(then)) if isinstance(now, dict) else now - then

    figures = {name: rest(getattr(report.run, name), before[name]) for name in FIGURES}
    return replace(report, **figures, started_at=started_at)


def finish(store: Store, run: Run, spent: Spent) -> SyncReport:
    """Closes the run; ``spent`` is the cost since its last commit."""
    now = store.now()
    deleted = 0
    with store.transaction():
        keep_newest_lists(store)
        if run.given:
            deleted = mark_messages_of_deleted(store, run, now)
        else:
            if not run.alone:
                note_missed(store, run)
            if run.mode == "full":
                deleted = mark_gone(store, run, now)
        if not run.given or not store.rows(f"SELECT 1 FROM runs WHERE {UNFINISHED} LIMIT 1"):
            clear(store)
        return _close(
            store,
            run,
            spent,
            "state = 'finished', deleted = deleted + ?, lists_done = NULL, lists_left = NULL, "
            "lists_never_read = NULL, oldest_list_at = NULL",
            [deleted],
        )


def end_partial(
    store: Store,
    run: Run,
    spent: Spent,
    lists: tuple[int, int | None] | None = None,
    stopped_by: str | None = None,
) -> SyncReport:
    """Ends a run whose budget is used up; the next sync resumes it.

    Args:
        store: The mirror's tables.
        run: The run.
        spent: The cost since its last commit.
        lists: How many lists are done, and how many there are; None for what the tables tell.
        stopped_by: What stopped the run, if it was not just the budget.
    """
    done, total = lists or _lists_of(store, run)
    deleted = 0
    with store.transaction():
        keep_newest_lists(store)
        if run.mode == "full":
            # Users are marked this early only if they were not found by id, which proves that their
            # messages are gone, whatever is left to read.
            deleted = mark_messages_of_deleted(store, run, store.now())
        return _close(
            store,
            run,
            spent,
            f"""
            state = 'partial', deleted = deleted + ?, error = ?,
            lists_done = ?, lists_left = ?,
            lists_never_read = (
                SELECT count(*) FROM users WHERE deleted_at IS NULL
                AND id NOT IN (SELECT user_id FROM lists)),
            oldest_list_at = (
                SELECT min(checked_at) FROM lists
                WHERE (run_id <> {run.run_id} OR kind = 'partial')
                AND user_id NOT IN (SELECT id FROM users WHERE deleted_at IS NOT NULL))
            """,
            [deleted, stopped_by, done, None if total is None else max(total - done, 0)],
        )


def _close(
    store: Store, run: Run, spent: Spent, assignments: str, values: list[int | str | None]
) -> SyncReport:
    listed = "user_id NOT IN (SELECT id FROM users WHERE deleted_at IS NOT NULL)"
    store.rows(
        f"""
        UPDATE runs SET ended_at = ?, {ADD_SPENT}, rejects = {_rejects(run)},
            certificate = coalesce(certificate, 'uncertified'),
            lists_by_certificate = {_counted("certificate", f"kind <> 'partial' AND {listed}")},
            lists_by_kind = {_counted("kind", f"{_of(run)} AND kind <> 'partial'")},
            {assignments}
        WHERE run_id = {run.run_id}
        """,
        [store.now(), *spent, *values],
    )
    trusted = f"CASE WHEN mode = 'quick' AND {AUDIT_ENDED} THEN lists_skipped ELSE 0 END"
    set_in_run(store, run.run_id, f"lists_trusted = {trusted}")
    store.count_change()
    run.requests += spent.requests
    return report_of(store, run.run_id)


def _lists_of(store: Store, run: Run) -> tuple[int, int | None]:
    [(done, total)] = store.rows(
        f"SELECT (SELECT count(DISTINCT user_id) FROM lists WHERE run_id = {run.run_id} "
        "AND kind <> 'partial'), "
        f"(SELECT count(*) FROM users WHERE EXISTS (SELECT 1 FROM runs "
        f"WHERE run_id = {run.run_id} AND users_swept_at IS NOT NULL))"
    )
    return int(done), int(total) or None


def _rejects(run: Run) -> str:
    return f"(SELECT count(*) FROM rejects WHERE run_id = {run.run_id})"


def _of(run: Run) -> str:
    return f"run_id = {run.run_id}"


def _counted(column: str, condition: str) -> str:
    return (
        f"(SELECT map_from_entries(list(({column}, rows) ORDER BY {column})) FROM "
        f"(SELECT {column}, count(*) AS rows FROM lists "
        f"WHERE {column} IS NOT NULL AND {condition} GROUP BY ALL))"
    )


def report_of(store: Store, run_id: int) -> SyncReport:
    """The report of a finished or a partial run, with the figures of the run."""
    readable = (f"epoch_us({name})" if kind == TIME else name for name, kind in COLUMNS.items())
    [row] = store.rows(f"SELECT {', '.join(readable)} FROM runs WHERE run_id = ?", [run_id])
    stored: dict[str, Any] = {
        name: from_microseconds(value) if kind == TIME else value
        for (name, kind), value in zip(COLUMNS.items(), row, strict=True)
    }
    uncertified = store.rows(
        "SELECT user_id, kind FROM lists WHERE run_id = ? AND certificate = 'uncertified' "
        "AND kind <> 'partial' ORDER BY user_id",
        [run_id],
    )
    [(without_id,)] = store.rows(
        "SELECT count(*) FROM rejects WHERE run_id = ? AND resource = 'users' AND id IS NULL",
        [run_id],
    )
    for name in ("lists_by_certificate", "lists_by_kind"):
        stored[name] = stored[name] or {}
    return SyncReport(
        **stored,
        run=SyncFigures(**{each.name: stored[each.name] for each in fields(SyncFigures)}),
        resumed=stored["resumptions"] > 0,
        uncertified_users=tuple(user_id for user_id, _ in uncertified),
        unread_users=tuple(user_id for user_id, kind in uncertified if kind == "unread"),
        users_without_id=without_id,
        odd_values=count_odd_values(store.rows),
        audit=audit_sentence(store.rows, run_id),
        evidence=evidence_sentence(store.rows),
    )
