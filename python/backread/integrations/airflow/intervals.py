"""Rate-limits log lines."""

from __future__ import annotations

from time import monotonic

__all__ = ["Interval"]


class Interval:
    """An interval that is over after ``seconds``, and then starts again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = monotonic()

    def is_over(self) -> bool:
        """Whether the interval is over; if so, starts the next one."""
        now = monotonic()
        if now - self._since < self._seconds:
            return False
        self._since = now
        return True
