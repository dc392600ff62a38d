"""Computes `Figures` from the published snapshot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from itertools import count
from time import monotonic
from typing import Any

from backread.mirror.figures import queries
from backread.mirror.figures.model import Figures, FiguresProgress
from backread.mirror.figures.opening_hours import read_opening_hours, spell_opening_hours
from backread.mirror.published.period import Moment, Period, moment_of
from backread.mirror.published.snapshot_reader import SnapshotReader
from backread.mirror.published.status import status_sentences
from backread.mirror.published.views import LISTS, count_odd_values
from backread.mirror.store.engine import Rows, from_microseconds, quoted, timestamp

STEPS = 7

# DuckDB also takes abbreviations such as IST, of which three countries have their own.
NAMES = """
SELECT name FROM pg_timezone_names()
WHERE name IN ('UTC', 'GMT', 'CET', 'EET', 'MET', 'WET')
    OR NOT regexp_full_match(name, '[A-Z]{3}|SystemV/.*')
"""


def compute_figures(
    reader: SnapshotReader,
    *,
    timezone: str | None,
    opening_hours: str | None,
    since: Moment | None,
    until: Moment | None,
    tell: Callable[[FiguresProgress], object] | None,
) -> Figures:
    """The figures of the newest snapshot; see `Mirror.figures`."""
    hours = None if opening_hours is None else read_opening_hours(opening_hours)
    began, done = monotonic(), count()

    def step(name: str) -> None:
        if tell is not None:
            tell(FiguresProgress(name, next(done), STEPS, monotonic() - began))

    snapshot = reader.snapshot()
    # Temporary tables belong to one cursor.
    with snapshot.cursor:
        rows: Rows = snapshot.rows
        zone = _find_timezone(timezone, rows)
        period = Period.parse(since, until, partial(_moment_in, timezone=zone, rows=rows))
        now = datetime.now(UTC)
        values = {
            "timezone": quoted(zone),
            "now": timestamp(now),
            "period": _during("created_at", period),
            "asked_period": _during("asked_at", period),
            "first_period": _during("first_message_at", period),
            "has_hours": hours is not None,
            "hours": ", ".join(map(str, hours or ())),
        }

        def run(statement: str) -> list[tuple[Any, ...]]:
            return rows(statement.format_map(values))

        def dicts(query: str) -> list[Any]:
            return [each for (each,) in run(f"SELECT each FROM ({query}) AS each")]

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
        step("conversations")
        run(queries.TALKS)
        step("times")
        run(queries.HOURLY)
        step("response times")
        if hours is None:
            run(queries.WAITS)
        else:
            run(queries.OPEN_INTERVALS)
            run(queries.WAITS_IN_OPENING_HOURS)
        [responses] = dicts(queries.RESPONSES)
        responses["buckets"] = dicts(queries.BUCKETS)
        [totals] = dicts(queries.TOTALS)
        [(unit,)] = run(queries.UNIT)
        values["unit"] = unit
        volume = dicts(queries.VOLUME)
        step("operators")
        [(operators, operators_total)] = run(queries.OPERATORS)
        step("invitations")
        [invitations] = dicts(queries.INVITATIONS)
        step("attachments")
        [attachments] = dicts(queries.ATTACHMENTS)
        attachments["by_type"] = dict(run(queries.FILE_TYPES))
        [states] = dicts(queries.STATES)
        return Figures(
            timezone=zone,
            opening_hours=None if hours is None else spell_opening_hours(hours),
            since=None if period.since is None else period.since.isoformat(),
            until=None if period.until is None else period.until.isoformat(),
            computed_at=now.isoformat(),
            coverage=coverage,
            totals=totals,
            unit=unit,
            volume=volume,
            hours=dicts(queries.HOURS),
            responses=responses,
            states=states,
            invitations=invitations,
            attachments=attachments,
            operators=operators,
            operators_total=operators_total,
            longest=dicts(queries.LONGEST),
        )


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
