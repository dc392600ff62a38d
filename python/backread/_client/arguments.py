"""Argument checks, made before anything is sent."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from types import FunctionType

    from backread._backread import WalkOptions

__tracebackhide__ = True

F = TypeVar("F", bound=Callable[..., Any])

LARGEST = 2**63 - 1
"""Ids, offsets and counts are stored as signed 64-bit integers."""


NOT_LIMIT = {
    "limit": "max_items ends the walk after that many rows; page_size is the limit of each request"
}
"""Hints for an option that a caller expects of a list, since other libraries have it."""


PROBE_REQUESTS = 120
"""The most requests a probe sends, by default."""

PROBE_SAMPLE = 12
"""The number of users whose messages it examines, by default."""


def whole(
    name: str, number: Any, least: int, most: int, *, then: str = "; nothing was sent"
) -> int:
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
        raise ValueError(f"{name} must be {bounds}, not {given}{then}")
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


def walk_options(strict: bool, page_size: object) -> WalkOptions:
    """The options of a walk except ``max_items``, checked."""
    return {"strict": strict, "page_size": page_limit("page_size", page_size)}


def known_options(call: F) -> F:
    """Decorates a method: TypeError for an unknown keyword, with the nearest known one."""
    function = cast("FunctionType", call)
    code = function.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @wraps(call)
    def checked(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            made = function.__name__ == "__init__"
            name = type(args[0]).__name__ if made else function.__qualname__
            # Passes only the names: a frame of the traceback must not contain the secret.
            if not options.keys() <= set(known):
                elsewhere = NOT_LIMIT if "max_items" in known else None
                refuse_options(name, _names(known, args[1:], options), known, elsewhere)
            return call(*args, **options)
        finally:
            # Traceback tools print local variables; one of these may be the secret.
            del args, options

    return cast("F", checked)


def _names(known: tuple[str, ...], given: tuple[Any, ...], options: dict[str, Any]) -> list[str]:
    """The names of the options, with the secret redacted in them."""
    from backread._client.secret import redact_secret

    secret = {**dict(zip(known, given, strict=False)), **options}.get("api_secret")
    return [redact_secret(each, secret) for each in options]


def refuse_options(
    call: str,
    given: Iterable[str],
    known: Collection[str],
    elsewhere: Mapping[str, str] | None = None,
) -> None:
    """Raises TypeError for an unknown name in ``given``, with the nearest known one.

    ``elsewhere`` has the hint for names that are set in another way.
    """
    for name in given:
        if name in known:
            continue
        from difflib import get_close_matches

        nearest = get_close_matches(name, known, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(sorted(known))}"
        hint = (elsewhere or {}).get(name, hint)
        raise TypeError(f"{call}() has no option {name}; {hint}")


def probe_arguments(max_requests: int, sample: int) -> tuple[int, int]:
    """The numbers, checked; ValueError out of bounds."""
    return (
        whole("max_requests", max_requests, 1, 1_000_000),
        whole("sample", sample, 0, 100_000),
    )
