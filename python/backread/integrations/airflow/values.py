"""Parses arguments given as values, as text of a URI or a form, or as a rendered template.

Does not import Airflow.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import PurePath
from typing import Any, TypeVar

from backread._client.option_kinds import read_number, read_switch, read_whole_number

__all__ = [
    "at_least_one",
    "check_privacy",
    "is_rendered",
    "memory",
    "one_of",
    "positive_seconds",
    "seconds",
    "set_default",
    "switch",
]

T = TypeVar("T")

MARKS = ("{{", "{%", "{#")


def is_rendered(value: object) -> bool:
    """Whether a value is final: it contains no Jinja and is not an XCom of another task."""
    if isinstance(value, str):
        return not any(mark in value for mark in MARKS)
    return not hasattr(value, "resolve")


def set_default(arguments: dict[str, Any], name: str, value: Any) -> None:
    """Sets an argument of an operator that neither the task nor its DAG's ``default_args`` set."""
    if name not in (arguments.get("default_args") or {}):
        arguments.setdefault(name, value)


def at_least_one(name: str, value: Any) -> int | None:
    """A whole number of 1 or more, or None."""
    read = _optional(name, value, read_whole_number)
    if read is not None and read < 1:
        raise ValueError(f"{name} must be 1 or more, or None, not {value}")
    return read


def seconds(name: str, value: Any) -> float | None:
    """A duration of 0 or more in seconds, from seconds or a timedelta, or None."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    read = _optional(name, value, read_number)
    if read is not None and not read >= 0:
        raise ValueError(f"{name} must be 0 seconds or more, not {value}")
    return read


def positive_seconds(name: str, value: Any) -> float | None:
    """A duration of more than 0 in seconds, from seconds or a timedelta, or None."""
    read = seconds(name, value)
    if read == 0:
        raise ValueError(f"{name} must be more than 0 seconds, or None for no limit, not {value}")
    return read


def memory(value: Any) -> int | None:
    """Bytes from `Mirror`'s ``memory_limit``, or None; ValueError also for another type."""
    from backread.mirror.memory import read_memory_limit

    if _is_none(value):
        return None
    try:
        return read_memory_limit(value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """ValueError unless the value is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, not {value!r}")


def check_privacy(pseudonymise: object, drop_bodies: object, redact: object) -> None:
    """ValueError or TypeError unless the arguments fit `Mirror`, with an absolute path.

    Airflow starts its processes in different folders.
    """
    for name, value in (("drop_bodies", drop_bodies), ("redact", redact)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, not {value!r}")
    if pseudonymise is None:
        return
    if not isinstance(pseudonymise, str) or not PurePath(pseudonymise).is_absolute():
        raise ValueError(
            "pseudonymise must be the absolute path of a key file that is on each worker"
        )


def switch(name: str, value: Any) -> bool:
    """True or False or a word for it; the ValueError for anything else names the argument."""
    try:
        return read_switch(value)
    except ValueError as error:
        raise ValueError(f"{name} must be {error}, not {value!r}") from None


def _optional(name: str, value: Any, read: Callable[[Any], T]) -> T | None:
    if _is_none(value):
        return None
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{name} must be {error}, not {value!r}") from None


def _is_none(value: object) -> bool:
    # Jinja renders None as "None".
    return value is None or value in ("", "None")
