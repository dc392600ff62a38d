"""What the shards of a plan prove together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import fields
from itertools import chain
from typing import TYPE_CHECKING, Any, get_args

from backread.models import Certificate, WalkReport

if TYPE_CHECKING:
    from backread.sharding.planning import Plan


# Weakest first.
STRENGTH: dict[str, int] = {"uncertified": 0, "linked": 1, "counted": 2, "snapshot": 3}
assert STRENGTH.keys() == set(get_args(Certificate))

COUNTS = [each.name for each in fields(WalkReport) if each.type in (int, float)]
ROWS = ("pages", "rows", "distinct", "repeats")
DEFECTS = ("repaired_text", "odd_values", "unreadable_rows")

REASONS = 5
"""A joined reason quotes this many shards, and counts the others."""


def join_reports(plan: Plan[Any], reports: Iterable[WalkReport]) -> WalkReport:
    """Joins the shards' reports into one, as if a single walk had read the whole plan.

    The certificate is the weakest of the shards' and of the plan's walk; counts are summed,
    including the plan's requests. A list that is ``linked`` in each part is linked as a whole,
    since each user of the plan is in one shard, and was read or found gone. For messages the totals
    are those of all lists; for users the service's first and last count of its list.

    A report covers what its walk has fetched, which may be more than you consumed: read each
    listing to its end.

    Args:
        plan: The whole result of `plan`.
        reports: Those of the shards' listings, one per shard, in the plan's order.

    Raises:
        TypeError: ``plan`` is not the result of `plan`.
        ValueError: The number of reports is not that of the shards, or one was given twice.
    """
    if not hasattr(plan, "report"):
        raise TypeError(f"join_reports takes the whole result of plan(), not {type(plan).__name__}")
    read = list(reports)
    if len(read) != len(plan):
        raise ValueError(
            f"{len(read)} reports for {len(plan)} shards; pass one for each, in the plan's order"
        )
    _refuse_repeated(read)
    return join_shard_reports(plan, read)


def join_shard_reports(plan: Plan[Any], read: list[WalkReport]) -> WalkReport:
    """Like `join_reports`, for reports known to be one of each shard: some may be equal."""
    everything = [plan.report, *read]
    weakest: Certificate = min(
        (report.certificate for report in everything), key=STRENGTH.__getitem__
    )
    lists: Counter[str] = Counter()
    for report in read:
        lists.update(report.lists_by_certificate)
    first, last = _totals(plan, read)
    # For users, the plan has read the same rows as the shards.
    of_lists = everything if plan.resource == "messages" else read
    values: dict[str, Any] = {
        name: sum(
            getattr(each, name)
            for each in (read if name in ROWS else of_lists if name in DEFECTS else everything)
        )
        for name in COUNTS
    }
    moments = [report.ended_at for report in read]
    values["sweeps"] = max(report.sweeps for report in read)
    for name in ("uncertified_users", "unread_users"):
        values[name] = tuple(sorted(chain.from_iterable(getattr(each, name) for each in read)))
    return WalkReport(
        **values,
        total_first=first,
        total_last=last,
        certificate=weakest,
        started_at=plan.report.started_at,
        ended_at=None if None in moments else max(filter(None, moments)),
        reason=_reason(plan, read) if weakest == "uncertified" else None,
        lists_by_certificate=dict(lists),
        evidence=_evidence(everything, read),
    )


def _evidence(everything: list[WalkReport], read: list[WalkReport]) -> dict[str, int | None]:
    names = dict.fromkeys(chain.from_iterable(report.evidence for report in everything))
    evidence = {name: _sum(each.evidence.get(name, 0) for each in everything) for name in names}
    # The plan's walk is not short of the rows that its shards are.
    return evidence | {"rows_short": _sum(report.evidence.get("rows_short") for report in read)}


def _refuse_repeated(read: list[WalkReport]) -> None:
    # Reports cannot be hashed; those of the same times are few.
    begun: defaultdict[object, list[WalkReport]] = defaultdict(list)
    for report in read:
        alike = begun[report.started_at, report.ended_at]
        if report.started_at is not None and report in alike:
            raise ValueError("the same report was given twice; pass each shard's own")
        alike.append(report)


def _totals(plan: Plan[Any], read: list[WalkReport]) -> tuple[int | None, int | None]:
    if plan.resource == "messages":
        return _sum(one.total_first for one in read), _sum(one.total_last for one in read)
    ended = [report for report in read if report.ended_at is not None]
    latest = max(ended, key=lambda report: report.ended_at, default=None)  # type: ignore[arg-type,return-value]
    return plan.report.total_first, None if latest is None else latest.total_last


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
