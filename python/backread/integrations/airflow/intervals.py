"""Log lines at intervals of time, however often there is something to say."""

from __future__ import annotations

from time import monotonic

__all__ = ["Interval"]


class Interval:
    """Is over so many seconds after it was made, or was over the last time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = monotonic()

    def is_over(self) -> bool:
        """Whether it is; then the next one begins."""
        now = monotonic()
        if now - self._since < self._seconds:
            return False
        self._since = now
        return True
