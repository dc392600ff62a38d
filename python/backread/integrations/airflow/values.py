"""Parses arguments given as values, as text of a URI or a form, or as a rendered template.

Does not import Airflow.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

__all__ = [
    "at_least_one",
    "is_rendered",
    "named_truth",
    "number",
    "one_of",
    "seconds",
    "truth",
    "whole_number",
]

T = TypeVar("T")

TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
MARKS = ("{{", "{%", "{#")


def is_rendered(value: object) -> bool:
    """Whether a value is final: it contains no Jinja and is not an XCom of another task."""
    if isinstance(value, str):
        return not any(mark in value for mark in MARKS)
    return not hasattr(value, "resolve")


def number(value: Any) -> float:
    """A number or its text; ValueError for anything else."""
    if isinstance(value, bool):
        raise ValueError("it must be a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("it must be a number") from None


def whole_number(value: Any) -> int:
    """A whole number or its text; ValueError for anything else."""
    given = number(value)
    if not given.is_integer():
        raise ValueError("it must be a whole number")
    return int(given)


def truth(value: Any) -> bool:
    """True or False or a word for them; ValueError for anything else."""
    if isinstance(value, bool):
        return value
    try:
        return TRUTHS[str(value).strip().lower()]
    except KeyError:
        raise ValueError("it must be true or false") from None


def at_least_one(name: str, value: Any) -> int | None:
    """A whole number of 1 or more, or None."""
    read = _optional(name, value, whole_number)
    if read is not None and read < 1:
        raise ValueError(f"{name} is 1 or more, or None, not {value}")
    return read


def seconds(name: str, value: Any) -> float | None:
    """A duration of 0 or more in seconds, from seconds or a timedelta, or None."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    read = _optional(name, value, number)
    if read is not None and not read >= 0:
        raise ValueError(f"{name} is 0 seconds or more, not {value}")
    return read


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """ValueError unless the value is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} is {' or '.join(map(repr, allowed))}, not {value!r}")


def named_truth(name: str, value: Any) -> bool:
    """`truth`, whose error names the argument."""
    try:
        return truth(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}, not {value!r}") from None


def _optional(name: str, value: Any, read: Callable[[Any], T]) -> T | None:
    # Jinja renders None as "None".
    if value is None or value in ("", "None"):
        return None
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}, not {value!r}") from None
