"""Dates, times and periods as arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from backread.mirror.store.engine import timestamp

Moment = str | date
"""A date or time, in UTC if it names no other zone: ISO 8601 text, a date or a datetime."""


@dataclass(frozen=True, slots=True)
class Period:
    """The time from ``since`` on and before ``until``; None is no limit."""

    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ValueError("since must be earlier than until")

    @classmethod
    def parse(
        cls,
        since: Moment | None,
        until: Moment | None,
        read: Callable[[str, Moment], datetime] | None = None,
    ) -> Period:
        """The period between two arguments, read by `moment_of`; ValueError if it is empty."""
        given = {"since": since, "until": until}
        moment = read or moment_of
        return cls(**{name: moment(name, at) for name, at in given.items() if at is not None})

    def conditions(self, column: str) -> list[str]:
        """The SQL conditions for times in the period; none if it has no limit."""
        limits = ((">=", self.since), ("<", self.until))
        return [
            f"{column} {sign} {timestamp(moment)}" for sign, moment in limits if moment is not None
        ]


ALWAYS = Period()


def moment_of(name: str, value: Moment) -> datetime:
    """A date or time as an aware datetime; a date is its beginning."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(
                f"{name} must be a date or time such as 2024-03-05 or 2024-03-05T12:30:00+01:00, "
                f"not {value!r}"
            ) from None
    elif not isinstance(value, date):
        raise TypeError(f"{name} must be text, a date or a datetime, not {type(value).__name__}")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name}: {value} is outside the years 1 to 9999") from None
