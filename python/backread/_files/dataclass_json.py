"""Converts dataclasses to dicts of JSON values, and back; gives them methods and a short repr."""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")

DEEPEST = 127
"""The most levels of nesting, as for responses of the service."""

LONGEST_REPR = 100
"""The most characters of a repr, which a test's output and a debugger show on one line."""


class ShortRepr:
    """Gives a dataclass, made with ``repr=False``, a repr of its most telling fields."""

    __slots__ = ()

    _in_repr: ClassVar[tuple[str, ...]] = ()
    """The fields in the repr; by default all but ``extra``."""

    def __repr__(self) -> str:
        names = self._in_repr or [each for each in self.__match_args__ if each != "extra"]  # type: ignore[attr-defined]
        shown = ", ".join(f"{name}={_brief(getattr(self, name))}" for name in names)
        text = f"{type(self).__qualname__}({shown})"
        return text if len(text) <= LONGEST_REPR else f"{text[: LONGEST_REPR - 2]}…)"


class JsonRecord(ShortRepr):
    """Gives a dataclass its methods for JSON, which lose nothing on the way there and back."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as a dict of JSON values, for `from_dict`; times in ISO 8601, tuples as lists.

        ``from_dict(x.to_dict()) == x``, except that a number beyond the range of ``float``, which
        only ``extra`` may have, is the text that was sent.

        Example:
            ``client.users.get(42).to_dict()["created_at"]`` is ``"2026-11-30T08:15:00+00:00"``
        """
        # Fields that were beside the others are one level deeper here, in `extra`.
        document: dict[str, Any] = to_json_value(self, DEEPEST + 1)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` of this or an earlier release converted.

        Unknown keys are ignored. Raises ValueError, with the path of the key, for anything else.
        """
        return dataclass_from_json(cls, document, cls.__name__)

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        import json

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """What the JSON text of `to_json` has; ValueError as for `from_dict`."""
        from backread._files.json import parse_json

        return cls.from_dict(parse_json(text, cls.__name__))


def to_json_value(value: Any, levels: int = DEEPEST) -> Any:
    """Converts a value to JSON types; raises ValueError if it has others.

    Dataclasses become dicts by field name, tuples become lists, dates and datetimes ISO 8601 text,
    and integer keys and decimals text.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        raise ValueError(f"JSON has no {value}")
    if isinstance(value, date):
        return value.isoformat()
    if levels == 0:
        raise ValueError("it is nested too deep")
    if is_dataclass(value):
        return {
            each.name: to_json_value(getattr(value, each.name), levels - 1)
            for each in fields(value)
        }
    if isinstance(value, Mapping):
        return {_text_key(key): to_json_value(item, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(each, levels - 1) for each in value]
    # Models import this module, which must not take long.
    from decimal import Decimal

    if isinstance(value, Decimal):
        return str(value)
    raise ValueError(f"JSON has no type for {type(value).__name__}")


def value_of_key(document: object, name: str) -> Any:
    """The value of a key; None if it is missing or the document is not an object."""
    return document.get(name) if isinstance(document, Mapping) else None


def dataclass_from_json(kind: type[T], document: Any, what: str) -> T:
    """The dataclass that `to_json_value` converted; errors call it ``what``.

    Unknown keys are ignored, and missing ones take the field's default. Raises ValueError with the
    path of a field that is missing or does not fit its type.
    """
    try:
        record: T = _value(kind, document, "$")
    except ValueError as error:
        raise ValueError(f"not a {what}: {error}") from None
    return record


def _value(kind: Any, value: Any, path: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return _any(value, path)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        kinds = [each for each in inner if each is not type(None)]
        # Senders are told apart by the names of their fields.
        fitting = [each for each in kinds if len(kinds) == 1 or _has_fields(each, value)]
        return _value((fitting or kinds)[0], value, path)
    if origin is Literal:
        if isinstance(value, str) and value in inner:
            return value
    elif origin in (tuple, list):
        if isinstance(value, (list, tuple)):
            return origin(_value(inner[0], each, f"{path}[{at}]") for at, each in enumerate(value))
    elif origin is dict:
        if isinstance(value, Mapping):
            return {
                _key(inner[0], name, path): _value(inner[1], item, f"{path}.{name}")
                for name, item in value.items()
            }
    elif is_dataclass(kind):
        if isinstance(value, Mapping):
            return _object(kind, value, path)
    elif issubclass(kind, datetime):
        return _instant(value, path)
    elif kind is float:
        with contextlib.suppress(OverflowError):
            if type(value) in (int, float) and math.isfinite(value):
                return float(value)
    elif type(value) is kind:
        return value
    raise ValueError(f"{path} has the wrong type, {type(value).__name__}")


def _any(value: Any, path: str) -> Any:
    try:
        return to_json_value(value)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _object(kind: Any, value: Mapping[Any, Any], path: str) -> Any:
    hints = _hints(kind)
    missing = [
        each.name
        for each in fields(kind)
        if each.name not in value and each.default is each.default_factory is MISSING
    ]
    if missing:
        raise ValueError(f"{path} has no {', '.join(missing)}")
    return kind(
        **{
            each.name: _value(hints[each.name], value[each.name], f"{path}.{each.name}")
            for each in fields(kind)
            if each.name in value
        }
    )


def _has_fields(kind: Any, value: Any) -> bool:
    return isinstance(value, Mapping) and all(each.name in value for each in fields(kind))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _key(kind: Any, name: Any, path: str) -> Any:
    if type(name) is kind:
        return name
    if kind is int and isinstance(name, str) and name.isdecimal():
        return int(name)
    raise ValueError(f"{path} has the key {name!r:.40}, not a {kind.__name__}")


def _text_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if type(key) is int:
        return str(key)
    raise ValueError(f"JSON keys cannot have the type {type(key).__name__}")


def _brief(value: Any) -> str:
    """A value in a repr: the start of a text, a time as such, how many items a container has."""
    if isinstance(value, str):
        return repr(value[:LONGEST_REPR])
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, (tuple, Mapping)):
        return f"<{len(value)} item{'' if len(value) == 1 else 's'}>"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _instant(value: Any, path: str) -> datetime:
    try:
        instant = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"{path} is not a timestamp") from None
    if instant.tzinfo is None:
        raise ValueError(f"{path} has no time zone")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{path} is not a timestamp of the years 1 to 9999 in UTC") from None
