"""Replaces the values of users and messages with fakes; the shape stays as the service sent it."""

from __future__ import annotations

import json
from typing import Any

from backread.testing.recording.identifiers import LARGEST_ID
from backread.testing.recording.values import Fakes
from backread.typed_dicts import (
    MessageDict,
    OperatorSenderDict,
    PageDict,
    UserAttributeDict,
    UserDict,
    UserSenderDict,
)

__all__ = ["DOCUMENTED", "NO_ID", "fake_message", "fake_user", "line", "row_id"]

DOCUMENTED = frozenset({"user", "operator"}).union(
    *(
        shape.__annotations__
        for shape in (
            PageDict,
            UserDict,
            UserAttributeDict,
            MessageDict,
            UserSenderDict,
            OperatorSenderDict,
        )
    )
)
"""The names of all documented fields, and both documented types of sender."""

NO_ID = f"the id is not a whole number from 0 to {LARGEST_ID}"


def row_id(row: Any) -> int | None:
    """The row's id as a number, even if it was sent as text; None if it has no usable id."""
    found = row.get("id") if isinstance(row, dict) else None
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 20:
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= LARGEST_ID:
        return None
    return found


def fake_user(row: dict[str, Any], fakes: Fakes) -> dict[str, Any] | None:
    """The user with fake values; None without an id, since the mock could not serve it."""
    return _row(row, fakes, {"user_attributes": _attributes})


def fake_message(row: dict[str, Any], fakes: Fakes) -> dict[str, Any] | None:
    """The message with fake values; None without an id, since the mock could not serve it."""
    return _row(row, fakes, {"sender_type": lambda value, fakes: fakes.word(value)})


def line(user: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """The user as a line of a world's file, with the messages last."""
    # Not as a dict: the user may have a field "messages".
    return f'{_json(user)[:-1]},"messages":{_json(messages)}}}\n'


def _row(row: dict[str, Any], fakes: Fakes, special: dict[str, Any]) -> dict[str, Any] | None:
    number = row_id(row)
    if number is None:
        return None
    fake: dict[str, Any] = {}
    for name, value in row.items():
        if name == "id":
            # If ids are text, the mock's dialect converts them.
            fake[name] = fakes.identifier(number)
        elif name in special:
            fake[name] = special[name](value, fakes)
        else:
            fake[fakes.name(name)] = fakes.value(value, name)
    return fake


def _attributes(value: Any, fakes: Fakes) -> Any:
    """Keeps the attributes' names: the widget's code sets them, as it does those of fields."""
    if not isinstance(value, list):
        return fakes.value(value)
    return [_attribute(each, fakes) for each in value]


def _attribute(value: Any, fakes: Fakes) -> Any:
    fake = fakes.value(value)
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        fake["name"] = fakes.name(value["name"])
    return fake


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
