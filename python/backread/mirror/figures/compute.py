"""Computes `Figures` from the published snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from itertools import count
from time import monotonic
from typing import Any, cast

from backread._report.figures import Figures, FiguresDict, FiguresProgress
from backread.mirror.figures import queries
from backread.mirror.figures.opening_hours import read_opening_hours, spell_opening_hours
from backread.mirror.published.period import Moment, Period, moment_of
from backread.mirror.published.snapshot_reader import OpenSnapshot, SnapshotReader
from backread.mirror.published.status import status_sentences
from backread.mirror.published.views import LISTS, count_odd_values
from backread.mirror.store.engine import Rows, from_microseconds, quoted, timestamp

STEPS = 5

# DuckDB also takes abbreviations such as IST, of which three countries have their own.
NAMES = """
SELECT name FROM pg_timezone_names()
WHERE name IN ('UTC', 'GMT', 'CET', 'EET', 'MET', 'WET')
    OR NOT regexp_full_match(name, '[A-Z]{3}|SystemV/.*')
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is counted, and in which hours; the arguments of `Mirror.figures`."""

    timezone: str | None = None
    opening_hours: str | None = None
    since: Moment | None = None
    until: Moment | None = None


def compute_figures(
    reader: SnapshotReader, scope: Scope, tell: Callable[[FiguresProgress], object] | None = None
) -> Figures:
    """The figures of the newest snapshot; see `Mirror.figures`."""
    began, done = monotonic(), count()

    def step(name: str) -> None:
        if tell is not None:
            tell(FiguresProgress(name, next(done), STEPS, monotonic() - began))

    snapshot = reader.snapshot()
    # Temporary tables belong to one cursor.
    with snapshot.cursor:
        tables = _Tables(snapshot.rows, scope)
        period = tables.period
        rows, run, dicts = tables.rows, tables.run, tables.dicts
        step("completeness")
        [coverage] = dicts(queries.COVERAGE)
        certified = coverage["users_certificate"] not in (None, "uncertified")
        lists: dict[str, int] = dict(rows(LISTS))
        unproved = lists.get("uncertified", 0) + lists.get("never read", 0)
        [(rejects,)] = rows("SELECT count(*) FROM rejects")
        coverage |= {
            "lists_by_certificate": lists,
            "unproved_lists": unproved,
            "unproved": dicts(queries.UNPROVED),
            "rejects": rejects,
            "odd_values": count_odd_values(rows),
            "proved": certified and not unproved,
            "status": status_sentences(reader),
        }
        step("the period before")
        before = None
        if (earlier := _before(period, tables.now)) is not None:
            tables.make(earlier)
            before = {"totals": tables.totals(), "responses": tables.responses()}
        step("conversations")
        tables.make(period, coverage["as_of"])
        totals, responses = tables.totals(), tables.responses()
        [(tables.values["unit"],)] = run(queries.UNIT)
        step("operators")
        [(operators, operators_total)] = run(queries.OPERATORS)
        step("attachments")
        [attachments] = dicts(queries.ATTACHMENTS)
        attachments["by_type"] = dict(run(queries.FILE_TYPES))
        [invitations] = dicts(queries.INVITATIONS)
        [states] = dicts(queries.STATES)
        figures = Figures(
            timezone=tables.zone,
            opening_hours=None if tables.hours is None else spell_opening_hours(tables.hours),
            since=None if period.since is None else period.since.isoformat(),
            until=None if period.until is None else period.until.isoformat(),
            computed_at=tables.now.isoformat(),
            coverage=coverage,
            totals=totals,
            before=before,
            unit=tables.values["unit"],
            volume=dicts(queries.VOLUME),
            hours=dicts(queries.HOURS),
            responses=responses,
            states=states,
            invitations=invitations,
            attachments=attachments,
            operators=operators,
            operators_total=operators_total,
            longest=dicts(queries.LONGEST),
        )
        return cast("Figures", FiguresDict(figures))


def select_figure(name: str, snapshot: OpenSnapshot, scope: Scope) -> str:
    """The SQL condition for the conversations that a figure counts, on the snapshot's cursor.

    ``name`` is a list of `queries.LISTS`; ValueError for another.
    """
    source = queries.source_of(name)
    tables = _Tables(snapshot.rows, scope)
    tables.make(tables.period)
    tables.run(f"CREATE OR REPLACE TEMP TABLE listed AS SELECT DISTINCT user_id FROM {source}")
    return "user_id IN (SELECT user_id FROM listed)"


class _Tables:
    """Makes the temporary tables that the figures of a period are counted from."""

    def __init__(self, rows: Rows, scope: Scope) -> None:
        hours = scope.opening_hours
        self.hours = None if hours is None else read_opening_hours(hours)
        self.rows = rows
        self.zone = _find_timezone(scope.timezone, rows)
        read = partial(_moment_in, timezone=self.zone, rows=rows)
        self.period = Period.parse(scope.since, scope.until, read)
        self.now = datetime.now(UTC)
        self.values: dict[str, Any] = {
            "timezone": quoted(self.zone),
            "now": timestamp(self.now),
            "has_hours": self.hours is not None,
            "hours": ", ".join(map(str, self.hours or ())),
        }

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        return self.rows(statement.format_map(self.values))

    def dicts(self, query: str) -> list[Any]:
        return [each for (each,) in self.run(f"SELECT each FROM ({query}) AS each")]

    def make(self, period: Period, as_of: str | None = None) -> None:
        """The tables of a period; ``as_of`` is when the newest messages were read."""
        read_until = self.now if as_of is None else datetime.fromisoformat(as_of)
        self.values |= {
            "period": _during("created_at", period),
            "asked_period": _during("asked_at", period),
            "first_period": _during("first_message_at", period),
            "since": timestamp(period.since or datetime.min.replace(tzinfo=UTC)),
            "until": timestamp(min(period.until or read_until, read_until)),
        }
        self.run(queries.TALKS)
        self.run(queries.HOURLY)
        if self.hours is None:
            self.run(queries.WAITS)
        else:
            self.run(queries.OPEN_INTERVALS)
            self.run(queries.WAITS_IN_OPENING_HOURS)

    def totals(self) -> Any:
        [totals] = self.dicts(queries.TOTALS)
        return totals

    def responses(self) -> Any:
        [responses] = self.dicts(queries.RESPONSES)
        responses["buckets"] = self.dicts(queries.BUCKETS)
        return responses


def _before(period: Period, now: datetime) -> Period | None:
    """The period of the same length before; None without a beginning."""
    if period.since is None:
        return None
    try:
        start = period.since - (min(period.until or now, now) - period.since)
    except OverflowError:
        return None
    return Period(start, period.since) if start < period.since else None


def _during(column: str, period: Period) -> str:
    return " AND ".join(period.conditions(column)) or "true"


def _find_timezone(name: str | None, rows: Rows) -> str:
    """The name in its usual spelling; ``UTC`` for None.

    DuckDB has its own time zones, so this needs no tzdata, not even on Windows. Raises ValueError
    for an unknown name, with similar ones.
    """
    if name is None:
        return "UTC"
    if not isinstance(name, str):
        raise TypeError(f"timezone must be a name such as 'Europe/Berlin', not {name!r:.60}")
    known: dict[str, str] = {each.lower(): each for (each,) in rows(NAMES)}
    wanted = name.strip().replace(" ", "_").lower()
    if wanted in known:
        return known[wanted]
    named = {each.rpartition("/")[2]: full for each, full in known.items()} | known
    similar = " or ".join(
        dict.fromkeys(named[each] for each in get_close_matches(wanted, named, 3, 0.75))
    )
    advice = f"did you mean {similar}?" if similar else "use an IANA name such as Europe/Berlin"
    raise ValueError(f"timezone: {name!r:.60} is unknown; {advice}")


def _moment_in(name: str, value: Moment, timezone: str, rows: Rows) -> datetime:
    """A date or time as an aware datetime in UTC; in the time zone unless it names another."""
    moment = moment_of(name, value)
    given = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
    if isinstance(given, datetime) and given.tzinfo is not None:
        return moment
    local = quoted(moment.replace(tzinfo=None).isoformat(sep=" "))
    [(found,)] = rows(f"SELECT epoch_us(TIMESTAMP {local} AT TIME ZONE {quoted(timezone)})")
    microseconds: int = found
    try:
        return from_microseconds(microseconds)
    except OverflowError:
        raise ValueError(f"{name}: {value} in {timezone} is outside the years 1 to 9999") from None
