"""Converts dataclasses to dicts of JSON values, and back."""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = ["dataclass_from_json", "to_json_value", "value_of_key"]

T = TypeVar("T")

DEEPEST = 127
"""The most levels of nesting, as for responses of the service."""


def to_json_value(value: Any, levels: int = DEEPEST) -> Any:
    """Converts a value to JSON types; raises ValueError if it has others.

    Dataclasses become dicts by field name, tuples become lists, dates and datetimes ISO 8601 text,
    and integer keys text.
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
    if kind is Any:
        return _any(value, path)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        [kind] = [each for each in inner if each is not type(None)]
        return _value(kind, value, path)
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
