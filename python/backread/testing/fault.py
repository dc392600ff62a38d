"""Faults that break responses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from backread._backread import read_fault
from backread._client.arguments import known_options

__all__ = ["Fault", "rules_text"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a response; ``str()`` gives it in the mock's grammar.

    Made by its methods, or from its text: ``Fault("status(429, retry_after=1)")``. `Lane.on`, or
    the text of a whole rule for `Lane.fault`, selects the requests. ``latency`` and ``drip``
    combine with other faults; of the rest, the first that matches a request wins. Raises ValueError
    for an invalid fault.
    """

    text: str
    """The fault in its shortest form."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a Fault is made from its text, not from {type(self.text).__name__}")
        object.__setattr__(self, "text", read_fault(self.text))

    @classmethod
    @known_options
    def status(cls, code: int, *, retry_after: int | None = None, body: str | None = None) -> Fault:
        """Answers with the status ``code``, 200 to 599.

        ``retry_after`` is sent as Retry-After, in whole seconds; ``body`` replaces the mock's JSON
        error.
        """
        return _call("status", code, retry_after=retry_after, body=_quoted("body", body))

    @classmethod
    def latency(cls, ms: float | Literal["lognormal"]) -> Fault:
        """Delays the response by ``ms`` milliseconds, on the lane's clock.

        ``"lognormal"`` is `latency_lognormal` with its defaults.
        """
        return _call("latency", ms)

    @classmethod
    @known_options
    def latency_lognormal(cls, median_ms: float = 200, sigma: float = 0.5) -> Fault:
        """Delays each response by a random time.

        Half of the delays are below ``median_ms`` milliseconds; a larger ``sigma`` (0 to 10, the
        standard deviation of the logarithm) makes the longest ones longer.
        """
        return _call("latency", f"lognormal({float(median_ms)}, {float(sigma)})")

    @classmethod
    @known_options
    def reset(cls, after_bytes: int | None = None) -> Fault:
        """Resets the connection.

        Before any byte of the response, or after its head and ``after_bytes`` bytes of its body.
        """
        return _call("reset", after_bytes=after_bytes)

    @classmethod
    @known_options
    def truncate(cls, at: int, *, length: Literal["declared", "honest"] = "declared") -> Fault:
        """Ends the body after ``at`` bytes.

        ``length`` says what Content-Length is: that of the whole body (``"declared"``, and the
        connection is closed), or of the part (``"honest"``: only the JSON is broken).
        """
        return _call("truncate", at=at, length=length)

    @classmethod
    @known_options
    def drip(cls, *, bytes: int = 1024, ms: float = 10) -> Fault:  # noqa: A002 - the grammar's word
        """Sends the body in pieces of ``bytes`` bytes, each after ``ms`` milliseconds."""
        return _call("drip", bytes=bytes, ms=ms)

    @classmethod
    @known_options
    def stall(cls, after_bytes: int | None = None) -> Fault:
        """Stalls until the client disconnects.

        Before the head, or after the head and ``after_bytes`` bytes of the body.
        """
        return _call("stall", after_bytes=after_bytes)

    @classmethod
    def garbage(cls, text: str | None = None) -> Fault:
        """Status 200 and the JSON content type, but the body is ``text``, or else invalid JSON."""
        return _call("garbage") if text is None else _call("garbage", _quoted("text", text))

    @classmethod
    def wrong_content_type(cls, content_type: str = "text/html") -> Fault:
        """Sends the right body with ``content_type`` instead of the JSON one."""
        return _call("wrong_content_type", _quoted("content_type", content_type))

    @classmethod
    def stale_keepalive(cls) -> Fault:
        """Answers correctly and keeps the connection open, but closes it at the next request."""
        return _call("stale_keepalive")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Fault({self.text!r})"


def _call(name: str, *arguments: object, **named: object) -> Fault:
    given = [str(each) for each in arguments]
    given += [f"{name}={value}" for name, value in named.items() if value is not None]
    return Fault(f"{name}({', '.join(given)})")


def _quoted(name: str, text: str | None) -> str | None:
    """The text in quotes, as the grammar requires."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, as it is sent, not {type(text).__name__}")
    return json.dumps(text, ensure_ascii=False)


def rules_text(faults: str | Iterable[str] | None) -> str:
    """The rules as one text; None is empty. TypeError for anything but text, such as a `Fault`."""
    if isinstance(faults, str) or faults is None:
        return faults or ""
    several = hasattr(faults, "__iter__") and not isinstance(faults, (bytes, dict))
    rules: list[object] = list(faults) if several else [faults]
    texts = [rule for rule in rules if isinstance(rule, str)]
    if len(texts) < len(rules):
        wrong = next(rule for rule in rules if not isinstance(rule, str))
        raise TypeError(
            f"faults: whole rules as text, such as 'users: status(503)', not {wrong!r}; a Fault "
            "is given to on(...).fail"
        )
    return "\n".join(texts)
