"""Opening hours from text such as ``mon-fri 9-17``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["OpeningHours"]

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FULL_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MIDNIGHT = 24 * 60
EXAMPLES = "for example 'mon-fri 9-17' or 'mon-fri 9:00-17:30, sat 10-14'"

# Typographic dashes come with text that is pasted from a document.
DASHES = str.maketrans({"\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-"})
SPACED_DASH = re.compile(r"\s*-\s*")
DAY_RANGE = re.compile(r"([a-z]+)\.?(?:-([a-z]+)\.?)?")
TIME_RANGE = re.compile(r"(\d{1,2})(?:[:.](\d\d))?-(\d{1,2})(?:[:.](\d\d))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """The weekly times at which somebody answers.

    ``intervals`` are ordered and do not overlap: the ISO weekday (1 is Monday), and the first and
    the last minute of the day, from 0 to 1440.
    """

    intervals: tuple[tuple[int, int, int], ...]

    @classmethod
    def parse(cls, text: str) -> OpeningHours:
        """The opening hours; raises ValueError with an example for text that is not understood.

        Several rules are separated by commas, and so may be several days or several times of one
        rule: ``mon, wed 9-12, 13-17``. A time that ends before it begins ends on the next day.
        """
        if not isinstance(text, str):
            raise TypeError(f"opening_hours must be text, not {type(text).__name__}; {EXAMPLES}")
        days: list[int] = []
        waiting = False
        minutes: set[int] = set()
        plain = SPACED_DASH.sub("-", text.translate(DASHES).lower())
        for part in re.split(r"[,;]", plain):
            named, times = _words(part, text)
            if named:
                days = [*days, *named] if waiting else named
                waiting = True
            if times:
                if not days:
                    raise _refused(part, text, "it has times without days")
                waiting = False
                for day in days:
                    for start, end in times:
                        minutes.update(_week_minutes(day, start, end))
        if waiting or not minutes:
            raise _refused(plain.rsplit(",", 1)[-1], text, "it has no times")
        return cls(tuple(_intervals(minutes)))

    def __str__(self) -> str:
        by_day: dict[int, list[str]] = {}
        for day, start, end in self.intervals:
            by_day.setdefault(day, []).append(f"{_clock(start)}-{_clock(end)}")
        rules: list[tuple[int, int, str]] = []
        for day, times in by_day.items():
            joined = " ".join(times)
            if rules and rules[-1][1] == day - 1 and rules[-1][2] == joined:
                rules[-1] = (rules[-1][0], day, joined)
            else:
                rules.append((day, day, joined))
        return ", ".join(
            f"{DAYS[first - 1]}{'' if first == last else f'-{DAYS[last - 1]}'} {times}"
            for first, last, times in rules
        )


def _words(part: str, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """The days and the times of one part."""
    days: list[int] = []
    times: list[tuple[int, int]] = []
    for word in part.split():
        if (found := TIME_RANGE.fullmatch(word)) is not None:
            times.append(_times(found, text))
        elif times or (named := _days(word)) is None:
            raise _refused(word, text)
        else:
            days += named
    return days, times


def _days(word: str) -> list[int] | None:
    if word == "daily":
        return list(range(1, 8))
    found = DAY_RANGE.fullmatch(word)
    if found is None:
        return None
    first, last = _day(found[1]), _day(found[2] or found[1])
    if first is None or last is None:
        return None
    return [day % 7 + 1 for day in range(first - 1, first + (last - first) % 7)]


def _day(name: str) -> int | None:
    for place, (short, full) in enumerate(zip(DAYS, FULL_DAYS, strict=True), 1):
        if len(name) >= len(short) and full.startswith(name):
            return place
    return None


def _times(found: re.Match[str], text: str) -> tuple[int, int]:
    start_hour, start_minute, end_hour, end_minute = (int(each or 0) for each in found.groups())
    start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
    if start >= MIDNIGHT or end > MIDNIGHT or start_minute > 59 or end_minute > 59:
        raise _refused(found[0], text, "the times of a day are 0:00 to 24:00")
    if start == end:
        raise _refused(found[0], text, "it ends when it begins; a whole day is 0-24")
    return start, end


def _week_minutes(day: int, start: int, end: int) -> range | set[int]:
    first = (day - 1) * MIDNIGHT
    if end > start:
        return range(first + start, first + end)
    return {minute % (7 * MIDNIGHT) for minute in range(first + start, first + MIDNIGHT + end)}


def _intervals(minutes: set[int]) -> Iterable[tuple[int, int, int]]:
    """Each run of minutes within a day."""
    ordered = sorted(minutes)
    start = ordered[0]
    for minute, following in pairwise([*ordered, -1]):
        if following != minute + 1 or following % MIDNIGHT == 0:
            day, end = minute // MIDNIGHT, minute % MIDNIGHT + 1
            yield day + 1, start % MIDNIGHT, end
            start = following


def _clock(minute: int) -> str:
    return f"{minute // 60}:{minute % 60:02}"


def _refused(part: str, text: str, why: str = "it is not understood") -> ValueError:
    return ValueError(f"opening_hours: {part.strip()!r:.60} in {text!r:.120}: {why}; {EXAMPLES}")
