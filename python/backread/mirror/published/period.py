"""Dates and times as arguments."""

from __future__ import annotations

from datetime import UTC, date, datetime

__all__ = ["Moment", "moment_of"]

Moment = str | date
"""A date or time, in UTC if it names no other zone: ISO 8601 text, a date or a datetime."""


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
