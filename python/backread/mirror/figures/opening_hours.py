"""Opening hours from text such as ``mon-fri 9-17``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count, groupby

Interval = tuple[int, int, int]
"""The ISO weekday (1 is Monday), and the first and the last minute of the day, from 0 to 1440."""

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MIDNIGHT = 24 * 60
EXAMPLES = "for example 'mon-fri 9-17' or 'mon-fri 9:00-17:30, sat 10-14'"

# Typographic dashes come with text that is pasted from a document.
DASH = re.compile("\\s*[\u2010-\u2014-]\\s*")
DAY_RANGE = re.compile(r"([a-z]{3,})\.?(?:-([a-z]{3,})\.?)?")
TIME_RANGE = re.compile(r"(\d{1,2})(?:[:.](\d\d))?-(\d{1,2})(?:[:.](\d\d))?", re.ASCII)


def read_opening_hours(text: str) -> list[Interval]:
    """The intervals of the week, which are ordered and do not overlap.

    Days come before their times: ``mon, wed 9-12 13-17, sat 10-14``. A time that ends before it
    begins ends on the next day. Raises ValueError with an example for text that is not understood.
    """
    if not isinstance(text, str):
        raise TypeError(f"opening_hours must be text, not {type(text).__name__}; {EXAMPLES}")
    plain = DASH.sub("-", text.lower()).replace("daily", "mon-sun")
    days: list[int] = []
    minutes: set[int] = set()
    word, has_times = "", False
    for word in re.findall(r"[^\s,;]+", plain):
        if (times := TIME_RANGE.fullmatch(word)) is None:
            named = _days(word, text)
            days = named if has_times else [*days, *named]
            has_times = False
        elif days:
            has_times = True
            start, length = _times(times, text)
            for day in days:
                first = day * MIDNIGHT + start
                minutes.update(each % (7 * MIDNIGHT) for each in range(first, first + length))
        else:
            raise _refused(word, text, "it has times without days")
    if not has_times:
        raise _refused(word, text, "it has no times")
    return list(_intervals(minutes))


def spell_opening_hours(intervals: Iterable[Interval]) -> str:
    """The uniform spelling: ``mon-fri 9:00-12:00 13:00-17:00, sat 10:00-14:00``."""
    times = [""] * 7
    for day, start, end in intervals:
        times[day - 1] += f" {start // 60}:{start % 60:02}-{end // 60}:{end % 60:02}"
    rules = []
    for joined, found in groupby(range(7), times.__getitem__):
        days = [DAYS[each][:3] for each in found]
        if joined:
            rules.append("-".join(dict.fromkeys((days[0], days[-1]))) + joined)
    return ", ".join(rules)


def _days(word: str, text: str) -> list[int]:
    if (found := DAY_RANGE.fullmatch(word)) is None:
        raise _refused(word, text)
    names = (found[1], found[2] or found[1])
    places = [place for name in names for place, day in enumerate(DAYS) if day.startswith(name)]
    if len(places) < 2:
        raise _refused(word, text)
    first, last = places
    return [day % 7 for day in range(first, first + (last - first) % 7 + 1)]


def _times(found: re.Match[str], text: str) -> tuple[int, int]:
    """The first minute of the day, and the number of minutes."""
    start_hour, start_minute, end_hour, end_minute = (int(each or 0) for each in found.groups())
    start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
    if start >= MIDNIGHT or end > MIDNIGHT or start_minute > 59 or end_minute > 59:
        raise _refused(found[0], text, "times must be between 0:00 and 24:00")
    if start == end:
        raise _refused(found[0], text, "it ends when it begins; a whole day is 0-24")
    return start, (end - start) % MIDNIGHT or MIDNIGHT


def _intervals(minutes: set[int]) -> Iterator[Interval]:
    """Each run of minutes within a day."""
    places = count()
    runs = groupby(sorted(minutes), lambda each: (each // MIDNIGHT, each - next(places)))
    for (day, _), run in runs:
        within = [minute % MIDNIGHT for minute in run]
        yield day + 1, within[0], within[-1] + 1


def _refused(part: str, text: str, why: str = "it is not understood") -> ValueError:
    return ValueError(f"opening_hours: {part!r:.60} in {text!r:.120}: {why}; {EXAMPLES}")
