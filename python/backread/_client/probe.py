"""Checks the arguments of a probe, and says what it costs."""

from __future__ import annotations

from backread._client.arguments import whole

MOST_REQUESTS = 120
"""What a probe sends at the most unless it is told otherwise."""

SAMPLE = 12
"""The users whose messages it looks at."""


def probe_arguments(max_requests: int, sample: int) -> tuple[int, int]:
    """The numbers, checked; ValueError out of bounds."""
    return (
        whole("max_requests", max_requests, 1, 1_000_000),
        whole("sample", sample, 0, 100_000),
    )
