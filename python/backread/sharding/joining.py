"""What the shards of a plan prove together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

from backread.models import Certificate, WalkReport

if TYPE_CHECKING:
    from backread.sharding.planning import Plan

__all__ = ["join_reports"]

# Weakest first.
STRENGTH: dict[str, int] = {"uncertified": 0, "linked": 1, "counted": 2, "snapshot": 3}
assert STRENGTH.keys() == set(get_args(Certificate))

REASONS = 5
"""A joined reason quotes this many shards, and counts the others."""


def join_reports(plan: Plan[Any], reports: Iterable[WalkReport]) -> WalkReport:
    """Joins the shards' reports into one, as if a single walk had read the whole plan.

    ``reports`` are those of the shards' listings, one per shard, in the plan's order. The
    certificate is the weakest of these and of the plan's walk; counts are summed, including the
    plan's requests. A list that is ``linked`` in each part is linked as a whole, since each user of
    the plan is in one shard, and was read or found gone. For messages the totals are those of all
    lists; for users the service's first and last count of its list.

    A report covers what its walk has fetched, which may be more than you consumed: read each
    listing to its end.

    Raises ValueError if the number of reports is not that of the shards, or one was given twice.
    """
    if not hasattr(plan, "report"):
        raise TypeError(
            f"join_reports takes the plan as plan() gave it, whole, not {type(plan).__name__}"
        )
    read = list(reports)
    if len(read) != len(plan):
        raise ValueError(
            f"{len(read)} reports for {len(plan)} shards; give one for each, in the plan's order"
        )
    begun = [report for report in read if report.started_at is not None]
    if any(report in begun[:place] for place, report in enumerate(begun)):
        raise ValueError("the same report was given twice; give that of each shard")
    everything = [plan.report, *read]
    weakest: Certificate = min(
        (report.certificate for report in everything), key=STRENGTH.__getitem__
    )
    lists: Counter[str] = Counter()
    for report in read:
        lists.update(report.lists_by_certificate)
    uncertified = [user_id for report in read for user_id in report.uncertified_users]
    first, last = _totals(plan, read)
    about_messages = plan.resource == "messages"
    return WalkReport(
        requests=sum(report.requests for report in everything),
        pages=sum(report.pages for report in read),
        rows=sum(report.rows for report in read),
        distinct=sum(report.distinct for report in read),
        repeats=sum(report.repeats for report in read),
        total_first=first,
        total_last=last,
        sweeps=max(report.sweeps for report in read),
        repaired_text=sum(
            report.repaired_text for report in (everything if about_messages else read)
        ),
        certificate=weakest,
        started_at=plan.report.started_at,
        ended_at=_latest(read),
        reason=_reason(plan, read) if weakest == "uncertified" else None,
        lists_by_certificate=dict(lists),
        uncertified_users=tuple(sorted(uncertified)),
        links=sum(report.links for report in everything),
        missing_links=sum(report.missing_links for report in everything),
        inversions=sum(report.inversions for report in everything),
        rows_gone=sum(report.rows_gone for report in everything),
        rows_moved=sum(report.rows_moved for report in everything),
        rows_short=_sum(report.rows_short for report in read),
        proving_requests=sum(report.proving_requests for report in everything),
        rows_found_by_id=sum(report.rows_found_by_id for report in everything),
        outage_seconds=sum(report.outage_seconds for report in everything),
        unread_users=tuple(sorted(user_id for report in read for user_id in report.unread_users)),
        odd_values=sum(report.odd_values for report in (everything if about_messages else read)),
        unreadable_rows=sum(
            report.unreadable_rows for report in (everything if about_messages else read)
        ),
    )


def _totals(plan: Plan[Any], read: list[WalkReport]) -> tuple[int | None, int | None]:
    if plan.resource == "messages":
        return _sum(one.total_first for one in read), _sum(one.total_last for one in read)
    ended = [report for report in read if report.ended_at is not None]
    latest = max(ended, key=lambda report: report.ended_at, default=None)  # type: ignore[arg-type,return-value]
    return plan.report.total_first, None if latest is None else latest.total_last


def _latest(read: list[WalkReport]) -> Any:
    moments = [report.ended_at for report in read]
    return None if None in moments else max(moment for moment in moments if moment is not None)


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _reason(plan: Plan[Any], read: list[WalkReport]) -> str:
    reasons = []
    if plan.report.reason is not None:
        reasons.append(f"the list of users: {plan.report.reason}")
    doubted = [(index, report.reason) for index, report in enumerate(read) if report.reason]
    reasons += [f"shard {index}: {reason}" for index, reason in doubted[:REASONS]]
    if len(doubted) > REASONS:
        reasons.append(f"and {len(doubted) - REASONS} more shards are uncertified")
    return "; ".join(reasons)
