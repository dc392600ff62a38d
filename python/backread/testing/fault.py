"""What can be wrong with an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from backread._backread import read_rules
from backread._client.arguments import known_options

__all__ = ["Fault", "rules_text"]

# A fault ends with its parenthesis, so this is no part of it.
_TIMES = re.compile(r" x\d+$")
_ROUTE = "any: "


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong with an answer, in the grammar of the mock: ``str()`` shows it.

    Made by its methods, or from its text: ``Fault("status(429, retry_after=1)")``. Which requests
    it is for is said by `Lane.on`, or by the text of a whole rule for `Lane.fault`. ``latency`` and
    ``drip`` go together with others; of the rest, the first that fits a request wins. ValueError
    for what makes no sense.
    """

    text: str
    """The fault in its shortest form."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a Fault is made from its text, not from {type(self.text).__name__}")
        text = _shortest(self.text)
        if text is None or _TIMES.search(text):
            raise ValueError(
                f"fault {self.text!r}: one fault such as status(503) is wanted; which requests it "
                "is for, and how often, is said where it is used"
            )
        object.__setattr__(self, "text", text)

    @classmethod
    @known_options
    def status(cls, code: int, *, retry_after: int | None = None, body: str | None = None) -> Fault:
        """Another status, 200 to 599.

        ``retry_after`` is sent as Retry-After, in whole seconds; ``body`` replaces the JSON error
        that the mock writes.
        """
        return _call("status", code, retry_after=retry_after, body=_quoted("body", body))

    @classmethod
    def latency(cls, ms: float | Literal["lognormal"]) -> Fault:
        """The answer comes so many milliseconds late, on the lane's clock.

        ``"lognormal"`` is `latency_lognormal` with its defaults.
        """
        return _call("latency", ms)

    @classmethod
    @known_options
    def latency_lognormal(cls, median_ms: float = 200, sigma: float = 0.5) -> Fault:
        """The answer comes late by a time drawn for each request.

        Half of the answers come before ``median_ms`` milliseconds; the larger ``sigma`` (0 to 10,
        the standard deviation of the logarithm), the later the latest.
        """
        return _call("latency", f"lognormal({median_ms!r}, {sigma!r})")

    @classmethod
    @known_options
    def reset(cls, after_bytes: int | None = None) -> Fault:
        """The connection is reset.

        Before any byte of the answer, or after its head and so many bytes of its body.
        """
        return _call("reset", after_bytes=after_bytes)

    @classmethod
    @known_options
    def truncate(cls, at: int, *, length: Literal["declared", "honest"] = "declared") -> Fault:
        """The body ends after ``at`` bytes.

        Content-Length says how long the whole is (``"declared"``, and the connection is closed), or
        how long the part is (``"honest"``: only the JSON is wrong).
        """
        return _call("truncate", at=at, length=length)

    @classmethod
    @known_options
    def drip(cls, *, bytes: int = 1024, ms: float = 10) -> Fault:  # noqa: A002 - the grammar's word
        """The body comes in pieces of so many bytes, each after so many milliseconds."""
        return _call("drip", bytes=bytes, ms=ms)

    @classmethod
    @known_options
    def stall(cls, after_bytes: int | None = None) -> Fault:
        """Nothing more comes until the client goes.

        Not even a head, or no more than the head and so many bytes of the body.
        """
        return _call("stall", after_bytes=after_bytes)

    @classmethod
    def garbage(cls, text: str | None = None) -> Fault:
        """Status 200 and the content type of JSON, but the body is ``text``, or no JSON anyhow."""
        return _call("garbage") if text is None else _call("garbage", _quoted("text", text))

    @classmethod
    def wrong_content_type(cls, content_type: str = "text/html") -> Fault:
        """The right body under another content type."""
        return _call("wrong_content_type", _quoted("content_type", content_type))

    @classmethod
    def stale_keepalive(cls) -> Fault:
        """A right answer, after which the connection is kept, and closed at the next request."""
        return _call("stale_keepalive")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Fault({self.text!r})"


def _call(name: str, *arguments: object, **named: object) -> Fault:
    given = [str(each) for each in arguments]
    given += [f"{name}={value}" for name, value in named.items() if value is not None]
    return Fault(f"{name}({', '.join(given)})")


def _shortest(text: str) -> str | None:
    """The fault as the grammar writes it; None where the text is more or less than one fault."""
    if ":" in text.partition("(")[0]:
        return None
    try:
        rules = read_rules(f"{_ROUTE}{text}")
    except ValueError as error:
        # The error quotes the rule that was read; what was written is the part behind the route.
        before, route, problem = str(error).partition(f'"{_ROUTE.strip()}')
        if not route:
            return None
        raise ValueError(f'{before}"{problem.lstrip(" ")}') from None
    return rules[0].removeprefix(_ROUTE) if len(rules) == 1 else None


def _quoted(name: str, text: str | None) -> str | None:
    """The text between quotes, as the grammar reads it."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, as it is sent, not {type(text).__name__}")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def rules_text(faults: str | Iterable[str] | None) -> str:
    """One text of the rules; None is none. TypeError for what is no text, such as a `Fault`."""
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
