"""Users and messages, as the service sends them, in place of real ones."""

from __future__ import annotations

import json
from typing import Any

from backread.testing.recording.identifiers import LARGEST_ID
from backread.testing.recording.values import Fakes

__all__ = ["DOCUMENTED", "NO_ID", "askable", "fake_message", "fake_user", "line"]

DOCUMENTED = frozenset(
    (
        "id",
        "name",
        "email",
        "reference",
        "created_at",
        "updated_at",
        "online_at",
        "last_url",
        "user_attributes",
        "value",
        "body",
        "read_by_user",
        "read_by_operator",
        "file_url",
        "auto_invitation",
        "sender_type",
        "sender",
        "forename",
        "surname",
        "picture_thumb_url",
        "limit",
        "offset",
        "total",
        "users",
        "messages",
        "user",
        "operator",
    )
)
"""Names of fields and types of senders in the interface."""

NO_ID = f"the id is no whole number from 0 to {LARGEST_ID}"


def askable(row: Any) -> int | None:
    """The number that a row is asked for by: its id, also where that is sent as text."""
    found = row.get("id") if isinstance(row, dict) else None
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 20:
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= LARGEST_ID:
        return None
    return found


def fake_user(row: dict[str, Any], fakes: Fakes) -> dict[str, Any] | None:
    """A user of the same shape; None where the mock could not serve it, for want of an id."""
    return _row(row, fakes, {"user_attributes": _attributes})


def fake_message(row: dict[str, Any], fakes: Fakes) -> dict[str, Any] | None:
    """A message of the same shape; None where the mock could not serve it, for want of an id."""
    return _row(row, fakes, {"sender_type": lambda value, fakes: fakes.word(value)})


def line(user: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """One line of a world: the user, and the messages after all else."""
    # By hand, for a user may have a field of that name too.
    return f'{_json(user)[:-1]},"messages":{_json(messages)}}}\n'


def _row(row: dict[str, Any], fakes: Fakes, special: dict[str, Any]) -> dict[str, Any] | None:
    number = askable(row)
    if number is None:
        return None
    fake: dict[str, Any] = {}
    for name, value in row.items():
        if name == "id":
            # Where ids are texts, the mock's dialect makes them so.
            fake[name] = fakes.identifier(number)
        elif name in special:
            fake[name] = special[name](value, fakes)
        else:
            fake[fakes.name(name)] = fakes.value(value, name)
    return fake


def _attributes(value: Any, fakes: Fakes) -> Any:
    """The names of properties are set by the widget's code, like those of fields."""
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
