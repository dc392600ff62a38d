"""Reports outages of the whole service, and long waits between two requests, on stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backread._display.words import duration
from backread.cli.stderr import say

__all__ = ["said_delays"]

LONG = 10.0
"""Seconds; shorter waits are not mentioned."""


class _Delays(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._until = 0.0
        """The end of the wait that was mentioned last."""

    def emit(self, record: logging.LogRecord) -> None:
        from backread._client.telemetry import OUTAGE_BEGAN, OUTAGE_ENDED

        if record.msg in (OUTAGE_BEGAN, OUTAGE_ENDED):
            say(record.getMessage())
            return
        fields: dict[str, Any] = vars(record)
        wait, status = fields.get("again_in"), fields.get("status")
        if wait is None or wait < LONG or status is None:
            return
        # Requests in flight are refused as well, and share the wait.
        if record.created + wait > self._until + LONG:
            self._until = record.created + wait
            say(
                f"the service answered {status}: the next attempt is in {duration(wait)}; "
                "Ctrl-C ends it"
            )


@contextmanager
def said_delays() -> Iterator[None]:
    """Writes a line when the service stops answering, when it answers again, and at a long wait."""
    logger = logging.getLogger("backread.http")
    handler, level = _Delays(), logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
