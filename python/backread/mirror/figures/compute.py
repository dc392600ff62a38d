"""Computes `Figures` from the published snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from backread.mirror.figures import queries
from backread.mirror.figures.model import (
    AttachmentFigures,
    Coverage,
    Figures,
    FiguresProgress,
    HourFigures,
    InvitationFigures,
    LongConversation,
    OperatorFigures,
    PeriodFigures,
    ResponseBucket,
    ResponseFigures,
    StateFigures,
    Totals,
    Unit,
    UnprovedList,
)
from backread.mirror.figures.opening_hours import OpeningHours
from backread.mirror.figures.timezones import find_timezone, moment_in
from backread.mirror.published.odd_values import count_odd_values
from backread.mirror.published.period import Moment
from backread.mirror.published.views import LISTS
from backread.mirror.store.engine import from_microseconds, quoted, timestamp

if TYPE_CHECKING:
    from backread.mirror.published.snapshot_reader import SnapshotReader

__all__ = ["compute_figures"]

Tell = Callable[[FiguresProgress], object]
Rows = Callable[[str], list[tuple[Any, ...]]]

LONGEST_DAILY = 92
LONGEST_WEEKLY = 750
LONGEST_MONTHLY = 5_500
"""The longest periods, in days, that have a row for each day, week and month."""

STEPS = 7


def compute_figures(
    reader: SnapshotReader,
    *,
    timezone: str | None,
    opening_hours: str | None,
    since: Moment | None,
    until: Moment | None,
    tell: Tell | None,
) -> Figures:
    """The figures of the newest snapshot; see `Mirror.figures`."""
    hours = None if opening_hours is None else OpeningHours.parse(opening_hours)
    opened = reader.snapshot()
    with opened.cursor as cursor:
        rows: Rows = partial(reader.rows, cursor, values=[])
        zone = find_timezone(timezone, rows)
        first = None if since is None else moment_in("since", since, zone, rows)
        last = None if until is None else moment_in("until", until, zone, rows)
        if first is not None and last is not None and first >= last:
            raise ValueError("since must be earlier than until")
        return _Computation(rows, zone, hours, first, last, tell).figures()


class _Computation:
    """The queries, on a cursor of its own with temporary tables."""

    def __init__(
        self,
        rows: Rows,
        timezone: str,
        hours: OpeningHours | None,
        since: datetime | None,
        until: datetime | None,
        tell: Tell | None,
    ) -> None:
        self._rows = rows
        self._timezone = timezone
        self._hours = hours
        self._since, self._until = since, until
        self._tell = tell
        self._began = monotonic()
        self._done = 0

    def figures(self) -> Figures:
        self._step("completeness")
        now = datetime.now(UTC)
        coverage = self._coverage(now)
        self._step("conversations")
        self._rows(queries.TALKS.format(period=self._period("created_at")))
        self._step("times")
        self._run(queries.HOURLY)
        self._step("response times")
        self._make_waits()
        responses = self._responses()
        totals, first_day, last_day = self._totals()
        unit = _unit(first_day, last_day)
        volume = self._volume(unit)
        self._step("operators")
        operators, operators_total = self._operators()
        self._step("invitations")
        invitations = InvitationFigures(*self._run(queries.INVITATIONS)[0])
        self._step("attachments")
        return Figures(
            timezone=self._timezone,
            opening_hours=None if self._hours is None else str(self._hours),
            since=self._since,
            until=self._until,
            computed_at=now,
            coverage=coverage,
            totals=totals,
            unit=unit,
            volume=tuple(volume),
            hours=tuple(HourFigures(*row) for row in self._rows(queries.HOURS)),
            responses=responses,
            states=StateFigures(*self._rows(queries.STATES)[0]),
            invitations=invitations,
            attachments=self._attachments(),
            operators=operators,
            operators_total=operators_total,
            longest=tuple(
                LongConversation(*row[:5], *map(from_microseconds, row[5:]))
                for row in self._rows(queries.LONGEST)
            ),
        )

    def _step(self, name: str) -> None:
        if self._tell is not None:
            seconds = monotonic() - self._began
            self._tell(FiguresProgress(name, self._done, STEPS, seconds))
        self._done += 1

    def _period(self, column: str) -> str:
        parts = []
        if self._since is not None:
            parts.append(f"{column} >= {timestamp(self._since)}")
        if self._until is not None:
            parts.append(f"{column} < {timestamp(self._until)}")
        return " AND ".join(parts) or "true"

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        return self._rows(
            statement.format(
                period=self._period("created_at"),
                asked_period=self._period("asked_at"),
                timezone=quoted(self._timezone),
            )
        )

    def _coverage(self, now: datetime) -> Coverage:
        runs = self._rows(queries.COVERAGE)
        run_id, mode, state, ended, certificate, reason, rejects = runs[0] if runs else [None] * 7
        as_of = from_microseconds(ended)
        lists: dict[str, int] = dict(self._rows(LISTS))
        return Coverage(
            run_id=run_id,
            mode=mode,
            state=state,
            as_of=as_of,
            age_seconds=None if as_of is None else (now - as_of).total_seconds(),
            users_certificate=certificate,
            users_reason=reason,
            lists_by_certificate=lists,
            unproved_lists=lists.get("uncertified", 0) + lists.get("never read", 0),
            unproved=tuple(UnprovedList(*row) for row in self._rows(queries.UNPROVED)),
            rejects=rejects or 0,
            odd_values=count_odd_values(self._rows),
        )

    def _make_waits(self) -> None:
        if self._hours is None:
            self._run(queries.WAITS)
            return
        asked = self._period("asked_at")
        self._rows(queries.open_intervals(self._hours.intervals, self._timezone, asked))
        self._run(queries.WAITS_IN_OPENING_HOURS)

    def _responses(self) -> ResponseFigures:
        [(asked, unknown, answered, outside, uncounted, *times)] = self._run(queries.RESPONSES)
        p50, p90, mean, longest = times
        [counts] = self._rows(queries.buckets(queries.BUCKETS))
        bounds: tuple[int | None, ...] = (*queries.BUCKETS, None)
        return ResponseFigures(
            asked=asked,
            answered=answered,
            unanswered=asked - unknown - answered,
            unknown=unknown,
            asked_outside_hours=None if self._hours is None else outside,
            answered_outside_hours=None if self._hours is None else uncounted,
            p50_seconds=p50,
            p90_seconds=p90,
            mean_seconds=mean,
            longest_seconds=longest,
            buckets=tuple(
                ResponseBucket(queries.BUCKETS[at], bounds[at + 1], count)
                for at, count in enumerate(counts)
            ),
        )

    def _totals(self) -> tuple[Totals, date | None, date | None]:
        [row] = self._rows(queries.TOTALS)
        *figures, first_day, last_day = row
        totals = Totals(*figures[:8], *map(from_microseconds, figures[8:]))
        return totals, _day(first_day), _day(last_day)

    def _volume(self, unit: Unit) -> Iterator[PeriodFigures]:
        """A row for each unit from the first to the last."""
        found = self._rows(
            queries.VOLUME.format(
                unit=quoted(unit),
                timezone=quoted(self._timezone),
                first_period=self._period("first_message_at"),
            )
        )
        following: date | None = None
        for day, *figures in found:
            start = _day(day) or date.min
            while following is not None and following < start:
                yield PeriodFigures(following, 0, 0, 0, 0, 0, None)
                following = _next(following, unit)
            yield PeriodFigures(start, *figures)
            following = _next(start, unit)

    def _operators(self) -> tuple[tuple[OperatorFigures, ...], int]:
        self._run(queries.OPERATORS)
        found = self._rows(queries.OPERATOR_RESPONSES)
        [(total,)] = self._rows(queries.OPERATORS_TOTAL)
        return tuple(OperatorFigures(*row) for row in found), total

    def _attachments(self) -> AttachmentFigures:
        found = self._run(queries.ATTACHMENTS)
        [(conversations,)] = self._run(queries.ATTACHED)
        return AttachmentFigures(
            messages=sum(row[1] for row in found),
            by_users=sum(row[2] for row in found),
            by_operators=sum(row[3] for row in found),
            conversations=conversations,
            by_type=_by_type(found),
        )


def _by_type(found: Sequence[tuple[Any, ...]]) -> dict[str, int]:
    named = [(kind, count) for kind, count, *_ in found if kind != "other"]
    most, rest = named[: queries.MOST_TYPES], named[queries.MOST_TYPES :]
    other = sum(count for kind, count, *_ in found if kind == "other")
    other += sum(count for _, count in rest)
    return dict(most) | ({"other": other} if other else {})


def _day(value: date | str | None) -> date | None:
    """A date of DuckDB, which is text for years that Python has not."""
    if isinstance(value, str):
        return date.min if "BC" in value else date.max
    return value


def _unit(first: date | None, last: date | None) -> Unit:
    days = 0 if first is None or last is None else (last - first).days
    if days <= LONGEST_DAILY:
        return "day"
    if days <= LONGEST_WEEKLY:
        return "week"
    return "month" if days <= LONGEST_MONTHLY else "year"


def _next(start: date, unit: Unit) -> date | None:
    """The beginning of the next unit; None after the year 9999."""
    try:
        if unit == "day":
            return start + timedelta(days=1)
        if unit == "week":
            return start + timedelta(days=7)
        if unit == "month" and start.month < 12:
            return start.replace(month=start.month + 1)
        return start.replace(year=start.year + 1, month=1)
    except (OverflowError, ValueError):
        return None
