"""Reports outages of the whole service on stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from backread.cli.stderr import say

__all__ = ["said_outages"]


class _Outages(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        from backread._client.telemetry import OUTAGE_BEGAN, OUTAGE_ENDED

        if record.msg in (OUTAGE_BEGAN, OUTAGE_ENDED):
            say(record.getMessage())


@contextmanager
def said_outages() -> Iterator[None]:
    """Writes a line when the service stops answering, and when it answers again."""
    logger = logging.getLogger("backread.http")
    handler, level = _Outages(), logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
