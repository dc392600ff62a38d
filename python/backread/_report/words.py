"""Numbers, times and shares in the words of the report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from backread._display.words import duration

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NONE = "–"
EVEN = re.compile(r"(?<=\d (?:h|d)) 00 (?:min|h)$|(?<=min) 00 s$|\.00?(?= s$)")


def seconds(value: float | None) -> str:
    """A response time; a dash if there is none."""
    if value is None:
        return NONE
    if value < 0.0005:
        return "0 s"
    # An axis has whole hours and minutes.
    return EVEN.sub("", duration(value))


def percent(part: int, whole: int) -> str:
    """``12%``, ``0.4%``; a dash for a part of nothing."""
    if not whole:
        return NONE
    share = 100 * part / whole
    return f"{share:.1f}%" if 0 < share < 9.95 else f"{share:.0f}%"


def day(value: str) -> str:
    """``5 Mar 2024`` of an ISO 8601 date."""
    year, month, number = value.split("-")
    return f"{int(number)} {MONTHS[int(month) - 1]} {year}"


def local(moment: str | None, timezone: str) -> str:
    """``2024-03-05 10:31`` in the time zone; in UTC, and saying so, where Python lacks the zone."""
    if moment is None:
        return NONE
    time = datetime.fromisoformat(moment)
    try:
        zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
        return time.astimezone(zone).isoformat(" ", "minutes")[:16]
    except (LookupError, ValueError, OverflowError):
        # Windows has no time zones unless tzdata is installed.
        return f"{time.isoformat(' ', 'minutes')[:16]} UTC"


def unit_label(volume: Mapping[str, Any], unit: str) -> str:
    """A unit of the volume as an axis names it, with an asterisk if it is not whole."""
    start, mark = volume["start"], "" if volume["whole"] else "*"
    if unit == "year":
        return f"{start[:4]}{mark}"
    return f"{day(start).partition(' ')[2] if unit == 'month' else day(start)}{mark}"
