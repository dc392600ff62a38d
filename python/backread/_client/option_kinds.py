"""How the values of a client's options are given: in code, as text, as JSON."""

from __future__ import annotations

import contextlib
import operator
import os
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


__tracebackhide__ = True

# A text, since datetime is imported only where a timedelta is given.
Duration: TypeAlias = "float | timedelta"

SWITCH_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
NO_LIMIT = "none"


def read_number(value: Any) -> float:
    """A number from a number or its text; ValueError("a number") for anything else."""
    if isinstance(value, bool):
        raise ValueError("a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a number") from None


def read_whole_number(value: Any) -> int:
    """A whole number from a number or its text; ValueError("a whole number") for anything else."""
    try:
        number = read_number(value)
    except ValueError:
        raise ValueError("a whole number") from None
    if not number.is_integer():
        raise ValueError("a whole number")
    return int(number)


def read_switch(value: Any) -> bool:
    """True or False from itself or a word for it; ValueError("true or false") for anything else."""
    if isinstance(value, bool):
        return value
    try:
        return SWITCH_WORDS[str(value).strip().lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("text")
    return value.strip()


def _read_limit(value: Any) -> float | None:
    if isinstance(value, str) and value.strip().lower() == NO_LIMIT:
        return None
    try:
        return read_number(value)
    except ValueError:
        raise ValueError(f"a number, or {NO_LIMIT} for no limit") from None


def _read_action(value: Any) -> str:
    word = str(value).strip().lower()
    if word not in ("wait", "raise"):
        raise ValueError("wait or raise")
    return word


def _is_number(value: Any) -> bool:
    # Also types of NumPy and others, such as Fraction.
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_duration(value: Any) -> bool:
    if _is_number(value):
        return True
    from datetime import timedelta

    return isinstance(value, timedelta)


def _in_seconds(value: Any) -> float:
    return float(value) if _is_number(value) else value.total_seconds()


def _path(path: str | os.PathLike[str]) -> str:
    from backread._files.paths import local_path

    return str(local_path(path, "copy it to this machine"))


class Kind(NamedTuple):
    """How the values of an option are given.

    Attributes:
        metavar: What the command's help calls a value.
        json_type: The type of a value in a JSON schema.
        read: Converts text or JSON to a value; the text of its ValueError says what it must be.
        type_names: What a value given in code must be, for the TypeError.
        fits: Whether a value given in code has that type.
        convert: Converts such a value to what the core takes.
        may_hold_password: Whether values must not be shown.
        nullable: Whether None is a value, which `check` leaves as it is.
    """

    metavar: str
    json_type: str
    read: Callable[[Any], Any]
    type_names: str
    fits: Callable[[Any], bool]
    convert: Callable[[Any], Any]
    may_hold_password: bool = False
    nullable: bool = True

    def check(self, name: str, value: Any) -> Any:
        """The value as the core takes it.

        Raises:
            ConfigurationError: If it is a path of another machine.
            TypeError: If it has another type; the message has the name, but not the value.
        """
        if value is None and self.nullable:
            return None
        # An integer of NumPy may be a length of time, which is not a number.
        with contextlib.suppress(TypeError):
            if self.fits(value):
                try:
                    return self.convert(value)
                except (ValueError, OverflowError) as error:
                    from backread.errors import ConfigurationError

                    raise ConfigurationError(f"{name}: {error}") from None
        given = type(value).__name__
        # Traceback tools print local variables, and this may be a misplaced secret.
        del value
        raise TypeError(f"{name} must be {self.type_names}, not {given}")


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _is_headers(value: Any) -> bool:
    from collections.abc import Mapping

    return isinstance(value, Mapping) and all(
        isinstance(each, str) for pair in value.items() for each in pair
    )


def _read_headers(value: Any) -> dict[str, str]:
    import json

    with contextlib.suppress(TypeError, ValueError):
        headers = json.loads(value)
        if isinstance(headers, dict) and _is_headers(headers):
            return headers
    raise ValueError("a JSON object of texts")


TEXT = Kind("TEXT", "string", _read_text, "a str", _is(str), str)
WORD = TEXT._replace(metavar="WORD")
ACTION = WORD._replace(read=_read_action, nullable=False)
URL = TEXT._replace(metavar="URL")
URL_WITH_PASSWORD = URL._replace(may_hold_password=True)
FILE = Kind("FILE", "string", _read_text, "a path", _is(str, os.PathLike), _path)
SECONDS = Kind(
    "SECONDS",
    "number",
    read_number,
    "seconds (int or float) or a timedelta",
    _is_duration,
    _in_seconds,
)
TIME_LIMIT = SECONDS._replace(read=_read_limit)
NUMBER = Kind("NUMBER", "number", _read_limit, "a number", _is_number, float)
COUNT = Kind(
    "NUMBER",
    "integer",
    read_whole_number,
    "an int",
    _is_whole_number,
    operator.index,
    nullable=False,
)
BYTES = COUNT._replace(metavar="BYTES")
HEADERS = Kind(
    "JSON",
    "object",
    _read_headers,
    "a mapping of names to values, both str",
    _is_headers,
    dict,
    may_hold_password=True,
)
SWITCH = Kind("SWITCH", "boolean", read_switch, "a bool", _is(bool), bool, nullable=False)
