"""Defaults and argument checks of `Client.probe`."""

from __future__ import annotations

from backread._client.arguments import whole

MOST_REQUESTS = 120
"""The most requests a probe sends, by default."""

SAMPLE = 12
"""The number of users whose messages it examines, by default."""


def probe_arguments(max_requests: int, sample: int) -> tuple[int, int]:
    """The numbers, checked; ValueError out of bounds."""
    return (
        whole("max_requests", max_requests, 1, 1_000_000),
        whole("sample", sample, 0, 100_000),
    )
