"""Numbers, times and shares in the words of the report."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from backread._display.words import amount, duration
from backread.mirror.figures import Coverage, Figures

__all__ = [
    "WEEKDAYS",
    "coverage_lines",
    "day",
    "local",
    "no_data",
    "percent",
    "period",
    "seconds",
    "span",
    "title",
    "unit_label",
]

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NONE = "–"
EVEN = re.compile(r"(?<=\d (?:h|d)) 00 (?:min|h)$|(?<=min) 00 s$|\.00?(?= s$)")


def title(figures: Figures, name: str | None) -> str:
    """``Conversations of chats, times in UTC``."""
    of = f" of {name}" if name else ""
    return f"Conversations{of}, times in {figures['timezone']}"


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


def span(figures: Figures) -> str:
    """The days from the first message to the last."""
    totals = figures["totals"]
    if totals["first_message_at"] is None:
        return "no messages with a time"
    first, last = (
        day(local(each, figures["timezone"])[:10])
        for each in (totals["first_message_at"], totals["last_message_at"])
    )
    return first if first == last else f"{first} to {last}"


def period(figures: Figures) -> str:
    """The period that was asked for, or nothing."""
    parts = []
    if figures["since"] is not None:
        parts.append(f"from {local(figures['since'], figures['timezone'])}")
    if figures["until"] is not None:
        parts.append(f"before {local(figures['until'], figures['timezone'])}")
    return " and ".join(parts)


def no_data(figures: Figures) -> str:
    """Why there is no message, and what to do."""
    users = figures["totals"]["users"]
    if asked := period(figures):
        return f"The mirror has no message {asked}; choose another period."
    if users:
        return (
            f"The mirror has {amount(users, 'user')} and no message: nobody has written yet, or no "
            "sync has read the message lists yet."
        )
    return "The mirror has no users and no messages yet; sync again once there are some."


def unit_label(start: str, unit: str) -> str:
    """A unit of the volume as an axis names it."""
    if unit == "year":
        return start[:4]
    return day(start).partition(" ")[2] if unit == "month" else day(start)


def coverage_lines(coverage: Coverage) -> tuple[str, str]:
    """One sentence on how recent the data is, and one on how complete."""
    if coverage["as_of"] is None or coverage["age_seconds"] is None:
        fresh = "No sync over all users has finished yet."
    else:
        run = f"sync {coverage['run_id']}"
        partial = ", which its budget ended early" if coverage["state"] == "partial" else ""
        fresh = (
            f"Data as of {local(coverage['as_of'], 'UTC')} UTC ({run}{partial}), "
            f"{duration(coverage['age_seconds'])} old when these figures were computed."
        )
    users = coverage["users_certificate"] or "uncertified"
    lists = sum(coverage["lists_by_certificate"].values())
    if coverage["proved"]:
        return fresh, (
            f"Complete: the list of users and all {amount(lists, 'message list')} are proved."
        )
    parts = []
    if users == "uncertified":
        why = f" ({coverage['users_reason']})" if coverage["users_reason"] else ""
        parts.append(f"the list of users is not proved{why}")
    if coverage["unproved_lists"]:
        parts.append(
            f"{coverage['unproved_lists']:,} of {amount(lists, 'message list')} not proved"
        )
    return fresh, f"Perhaps incomplete: {', and '.join(parts)}."
