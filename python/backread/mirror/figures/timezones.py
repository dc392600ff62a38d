"""Time zones by IANA name, and moments in them, as DuckDB knows them."""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches

from backread.mirror.published.period import Moment, moment_of
from backread.mirror.store.engine import Rows, from_microseconds, quoted

__all__ = ["find_timezone", "moment_in"]

# DuckDB also takes abbreviations such as IST, of which three countries have their own.
NAMES = """
SELECT name FROM pg_timezone_names()
WHERE name IN ('UTC', 'GMT', 'CET', 'EET', 'MET', 'WET')
    OR NOT regexp_full_match(name, '[A-Z]{3}|SystemV/.*')
"""


def find_timezone(name: str | None, rows: Rows) -> str:
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


def moment_in(name: str, value: Moment, timezone: str, rows: Rows) -> datetime:
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
