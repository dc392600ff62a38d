"""Rate limits of lanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from backread._backread import read_rate
from backread._client.arguments import known_options

__all__ = ["Rate", "rate_text"]


@dataclass(frozen=True, slots=True, init=False)
class Rate:
    """A token bucket: ``per_second`` requests, ``burst`` at once; others get ``status``.

    ``burst`` defaults to the requests of one second, at least 1. ``says`` is how responses announce
    the wait: ``"retry_after"`` (whole seconds, on a refusal), ``"headers"`` (X-RateLimit-Limit,
    -Remaining and -Reset on every response, Reset as an epoch in seconds) or ``"nothing"``.
    ``status`` is 429, or 503: ``Rate(10, burst=21, says="nothing", status=503)`` behaves like
    nginx's ``limit_req rate=10r/s burst=20 nodelay``.
    ``str()`` gives the text for the command line. Raises ValueError for invalid values.
    """

    per_second: float
    burst: int
    says: Literal["retry_after", "headers", "nothing"]
    status: Literal[429, 503]

    @known_options
    def __init__(
        self,
        per_second: float,
        *,
        burst: int | None = None,
        says: Literal["retry_after", "headers", "nothing"] = "retry_after",
        status: Literal[429, 503] = 429,
    ) -> None:
        if isinstance(per_second, str):
            raise TypeError(f"per_second must be a number; Rate.read({per_second!r}) parses text")
        room = "" if burst is None else f" burst={burst}"
        self._parse(f"{per_second}/s{room} says={says} status={status}")

    @classmethod
    def read(cls, text: str) -> Rate:
        """Parses a rate such as ``10/s burst=20 says=headers``; ValueError for other text."""
        rate = object.__new__(cls)
        rate._parse(text)
        return rate

    def _parse(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"text must be a str such as '10/s burst=20', not {text!r}")
        _, per_second, burst, says, status = read_rate(text)
        object.__setattr__(self, "per_second", per_second)
        object.__setattr__(self, "burst", burst)
        object.__setattr__(self, "says", says)
        object.__setattr__(self, "status", status)

    def __str__(self) -> str:
        rate = f"{self.per_second}/s burst={self.burst} says={self.says} status={self.status}"
        text, *_ = read_rate(rate)
        return text


def rate_text(rate: Rate | str | None) -> str | None:
    """The text of a rate, None for None; TypeError for anything but a rate or a text."""
    if rate is not None and not isinstance(rate, (Rate, str)):
        raise TypeError(f"rate: a Rate, its text such as '10/s burst=20', or None, not {rate!r}")
    return None if rate is None else str(rate)
