"""Parses operator arguments, given as values or as what a template rendered.

Does not import Airflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import PurePath
from typing import Any, TypeAlias, TypeVar

from backread._client.option_kinds import read_number, read_switch, read_whole_number
from backread._client.privacy import Privacy

__all__ = [
    "Parser",
    "absolute",
    "at_least_one",
    "check_arguments",
    "check_privacy",
    "is_rendered",
    "local",
    "memory",
    "one_of",
    "positive_seconds",
    "seconds",
    "set_default",
    "switch",
]

T = TypeVar("T")

Parser: TypeAlias = Callable[[str, Any], Any]
"""Parses the value of an argument with this name; ValueError, with the name, if it is invalid."""

MARKS = ("{{", "{%", "{#")


def is_rendered(value: object) -> bool:
    """Whether a value is final: it contains no Jinja and is not an XCom of another task."""
    if isinstance(value, str):
        return not any(mark in value for mark in MARKS)
    return not hasattr(value, "resolve")


def check_arguments(parsers: Mapping[str, Parser], task: object) -> None:
    """Raises ValueError for an invalid argument of a task; templates are not checked yet."""
    for name, parse in parsers.items():
        if is_rendered(value := getattr(task, name)):
            parse(name, value)


def set_default(arguments: dict[str, Any], name: str, value: Any) -> None:
    """Sets an argument of an operator that neither the task nor its DAG's ``default_args`` set."""
    if name not in (arguments.get("default_args") or {}):
        arguments.setdefault(name, value)


def absolute(name: str, folder: object) -> str:
    """The folder without a trailing slash; ValueError unless it is absolute or a URI.

    A relative path would depend on each process's working directory.
    """
    if not isinstance(folder, str) or not folder:
        raise ValueError(f"{name} must be the path or URI of a folder, not {folder!r}")
    if "://" not in folder and not PurePath(folder).is_absolute():
        raise ValueError(
            f"{name} must be an absolute path, not {folder!r}: Airflow starts its processes "
            "in different folders"
        )
    return folder.rstrip("/") or "/"


def local(name: str, folder: object) -> str:
    """An `absolute` folder that is a path."""
    path = absolute(name, folder)
    if "://" in path:
        raise ValueError(f"{name} must be a path that DuckDB can write to, not {path!r}")
    return path


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


def memory(name: str, value: Any) -> int | None:
    """Bytes from `Mirror`'s ``memory_limit``, or None; ValueError also for another type."""
    from backread.mirror.store.database import read_memory_limit

    try:
        return None if _is_none(value) else read_memory_limit(value)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from None


def one_of(*allowed: str) -> Parser:
    """Parses one of these words."""

    def parse(name: str, value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, not {value!r}")
        return value

    return parse


def switch(name: str, value: Any) -> bool:
    """True or False or a word for it."""
    return _named(name, value, read_switch)


def check_privacy(pseudonymise: object, drop_bodies: Any, redact: Any) -> None:
    """ValueError or TypeError unless the arguments fit `Mirror`, with an absolute path.

    Airflow starts its processes in different folders.
    """
    Privacy.of(None, drop_bodies, redact)
    if pseudonymise is None:
        return
    if not isinstance(pseudonymise, str) or not PurePath(pseudonymise).is_absolute():
        raise ValueError(
            "pseudonymise must be the absolute path of a key file that is on each worker"
        )


def _optional(name: str, value: Any, read: Callable[[Any], T]) -> T | None:
    return None if _is_none(value) else _named(name, value, read)


def _named(name: str, value: Any, read: Callable[[Any], T]) -> T:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"{name} must be {error}, not {value!r}") from None


def _is_none(value: object) -> bool:
    # Jinja renders None as "None".
    return value is None or value in ("", "None")
