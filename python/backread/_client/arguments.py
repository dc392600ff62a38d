"""Argument checks, made before anything is sent."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    import os
    from datetime import timedelta
    from types import FunctionType

    Duration: TypeAlias = float | timedelta

F = TypeVar("F", bound=Callable[..., Any])

LARGEST = 2**63 - 1
"""Ids, offsets and counts are stored as signed 64-bit integers."""


class SharedOptions(TypedDict, total=False):
    """The options that may differ between clients sharing connections; see `Client` for each."""

    timeout: Duration | None
    deadline: Duration | None
    max_retries: int
    max_concurrency: int
    rate_limit: float | None
    on_rate_limit: Literal["wait", "raise"]
    max_response_bytes: int
    outage_patience: Duration


class ChangedOptions(SharedOptions, total=False):
    """The arguments of `Client.with_options`."""

    traceparent: bool


class ClientOptions(SharedOptions, total=False):
    """The keyword options of `Client` and `AsyncClient`; see `Client` for each."""

    proxy: str | None
    ca_bundle: str | os.PathLike[str] | None
    allow_http: bool
    user_agent: str | None


def seconds(name: str, duration: Duration | None) -> float | None:
    """The duration in seconds, from a number of seconds or a timedelta; None stays None."""
    if duration is None:
        return None
    total_seconds = getattr(duration, "total_seconds", None)
    if total_seconds is not None:
        return float(total_seconds())
    if isinstance(duration, bool) or not isinstance(duration, (int, float)):
        given = type(duration).__name__
        # Traceback tools print local variables, and this may be a misplaced secret.
        del duration, total_seconds
        raise TypeError(f"{name} must be seconds (int or float) or a timedelta, not {given}")
    return float(duration)


def whole(name: str, number: Any, least: int, most: int) -> int:
    """The number as an int, from any integer type (numpy's too); ValueError out of bounds."""
    if isinstance(number, bool):
        raise TypeError(f"{name} must be an int, not bool")
    try:
        checked: int = operator.index(number)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {type(number).__name__}") from None
    if not least <= checked <= most:
        bounds = f"{least} or more" if checked < least and most == LARGEST else f"{least} to {most}"
        # Python refuses to format very long integers.
        given = checked if checked.bit_length() < 512 else f"one of {checked.bit_length()} bits"
        raise ValueError(f"{name} must be {bounds}, not {given}; nothing was sent")
    return checked


def identifier(name: str, number: object) -> int:
    """An id: 0 or more."""
    return whole(name, number, 0, LARGEST)


def identifiers(name: str, numbers: Iterable[int] | None) -> tuple[int, ...] | None:
    """Ids, each checked; None stays None."""
    if numbers is None:
        return None
    if isinstance(numbers, (str, bytes)) or not hasattr(numbers, "__iter__"):
        given = type(numbers).__name__
        raise TypeError(f"{name} must be ids (an iterable of int) or None, not {given}")
    return tuple(identifier(f"{name}[{place}]", one) for place, one in enumerate(numbers))


def page_limit(name: str, rows: object) -> int:
    """A page size that the API allows: 1 to 99 rows."""
    return whole(name, rows, 1, 99)


def page_offset(rows: object) -> int:
    """A position in a list: 0 or more."""
    return whole("offset", rows, 0, LARGEST)


def item_cap(rows: object) -> int | None:
    """The most items a walk returns: 0 or more; None for no cap."""
    return None if rows is None else whole("max_items", rows, 0, LARGEST)


def known_options(call: F) -> F:
    """Decorates a method: TypeError for an unknown keyword, with the nearest known one."""
    function = cast("FunctionType", call)
    code = function.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @wraps(call)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            made = function.__name__ == "__init__"
            name = type(args[0]).__name__ if made else function.__qualname__
            # Passes only the names: a frame of the traceback must not contain the secret.
            if not options.keys() <= set(known):
                refuse_options(name, _names(known, args[1:], options), known)
            return call(*args, **options)
        finally:
            # Traceback tools print local variables; one of these may be the secret.
            del args, options

    return cast("F", checked)


def _names(known: tuple[str, ...], given: tuple[Any, ...], options: dict[str, Any]) -> list[str]:
    """The names of the options, with the secret redacted in them."""
    from backread._client.secret import without_secret

    secret = {**dict(zip(known, given, strict=False)), **options}.get("api_secret")
    return [without_secret(each, secret) for each in options]


def refuse_options(call: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raises TypeError for an unknown name in ``given``, with the nearest known one."""
    for name in given:
        if name in known:
            continue
        from difflib import get_close_matches

        nearest = get_close_matches(name, known, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(sorted(known))}"
        raise TypeError(f"{call}() has no option {name}; {hint}")
