"""Rows read once more, with Python's json alone: what each face must make of an answer's text.

    rows = reference.rows(body, "users")            # ValueError where it is no JSON
    rows[0].sent                                    # the dict that as_dict=True must give
    rows[0].model                                   # the dataclass, None where the row does not fit
    rows[0].faults                                  # the places that do not, such as {".name"}
    reference.columns(rows[0].model)                # its row in an Arrow table

Slow and plain: the native module has faster ways to the same end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from backread.models import (
    Message,
    OperatorSender,
    OtherSender,
    User,
    UserAttribute,
    UserSender,
)

USER = [each.name for each in fields(User) if each.name != "extra"]
MESSAGE = [each.name for each in fields(Message) if each.name not in ("user_id", "extra")]


class UnsureError(Exception):
    """The interface leaves open whether this is a timestamp; what its reader says is right."""


class _FaultError(Exception):
    """A value is not what its field holds; ``places`` are below the value."""

    def __init__(self, *places: str) -> None:
        super().__init__()
        self.places = set(places or [""])


class Pairs(list[tuple[str, Any]]):
    """An object as sent, keys that come twice among it."""

    def last(self, name: str) -> Any:
        return dict(self).get(name)


@dataclass(frozen=True)
class Row:
    """One row: as sent, and as a model or the places that keep it from being one."""

    sent: Any
    model: Any
    faults: frozenset[str]


def parse(body: bytes) -> Any:
    """The JSON of a body whose text is repaired; ValueError for what is no JSON."""
    text = body.decode("utf-8", "replace")

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    return _repaired(
        json.loads(
            text,
            object_pairs_hook=Pairs,
            parse_constant=refuse,
        )
    )


def rows(body: bytes, key: str, user_id: int = 42) -> list[Row]:
    """The rows of a list response; ValueError where it is none."""
    page = parse(body)
    held = page.last(key) if isinstance(page, Pairs) else None
    if type(held) is not list or not all(isinstance(row, Pairs) for row in held):
        raise ValueError("no list of objects")
    return [row(pairs, key, user_id) for pairs in held]


def row(pairs: Pairs, key: str, user_id: int = 42) -> Row:
    try:
        model = _user(pairs) if key == "users" else _message(pairs, user_id)
    except _FaultError as fault:
        # Where there is no id, that is what is said.
        places = {".id"} if pairs.last("id") is None else fault.places
        return Row(as_sent(pairs), None, frozenset(places))
    return Row(as_sent(pairs), model, frozenset())


def as_sent(value: Any) -> Any:
    """Objects as dicts: of two values of a key the last one, at the place of the first."""
    if isinstance(value, Pairs):
        return {name: as_sent(held) for name, held in value}
    return [as_sent(held) for held in value] if type(value) is list else value


def columns(model: User | Message) -> dict[str, Any]:
    """A model as its row in a table; ``extra`` as the object that its JSON holds, or None."""
    if isinstance(model, User):
        attributes = model.user_attributes
        return {
            **{name: getattr(model, name) for name in USER},
            "user_attributes": None
            if attributes is None
            else [
                {"name": each.name, "value": each.value, "extra": each.extra or None}
                for each in attributes
            ],
            "extra": model.extra or None,
        }
    sender = model.sender
    flat = {
        f"sender_{name}": getattr(sender, name, None)
        for name in ("id", "name", "email", "forename", "surname", "picture_thumb_url", "extra")
    }
    return {
        "user_id": model.user_id,
        **{name: getattr(model, name) for name in MESSAGE if name != "sender"},
        **flat,
        "sender_extra": flat["sender_extra"] or None,
        "extra": model.extra or None,
    }


def loaded(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``to_pylist()`` with the JSON in it loaded, to compare with `columns`."""
    held = {
        name: json.loads(value) if name.endswith("extra") and value is not None else value
        for name, value in row.items()
    }
    if held.get("user_attributes") is not None:
        held["user_attributes"] = [loaded(each) for each in held["user_attributes"]]
    return held


# --- records -------------------------------------------------------------------------------------

_Reader = Callable[[Any], Any]


def _record(pairs: Any, readers: dict[str, _Reader]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The named fields, None where they are missing, and the rest."""
    if not isinstance(pairs, Pairs):
        raise _FaultError
    named: dict[str, Any] = dict.fromkeys(readers)
    rest: dict[str, Any] = {}
    places: set[str] = set()
    for name, value in pairs:
        if name not in readers:
            rest[name] = as_sent(value)
            continue
        try:
            named[name] = readers[name](value)
        except _FaultError as fault:
            places |= {f".{name}{place}" for place in fault.places}
    if places:
        raise _FaultError(*places)
    return named, rest


def _user(pairs: Any) -> User:
    named, rest = _record(pairs, _USER)
    if named["id"] is None:
        raise _FaultError(".id")
    return User(**named, extra=rest)


def _message(pairs: Any, user_id: int) -> Message:
    named, rest = _record(pairs, _MESSAGE)
    if named["id"] is None:
        raise _FaultError(".id")
    if named["sender"] is not None:
        try:
            named["sender"] = _sender(named["sender_type"], named["sender"])
        except _FaultError as fault:
            raise _FaultError(*(f".sender{place}" for place in fault.places)) from None
    return Message(**named, user_id=user_id, extra=rest)


def _sender(sender_type: str | None, pairs: Any) -> UserSender | OperatorSender | OtherSender:
    if not isinstance(pairs, Pairs):
        raise _FaultError
    if sender_type in ("user", "operator") and pairs.last("id") is not None:
        kind, readers = (
            (UserSender, _USER_SENDER) if sender_type == "user" else (OperatorSender, _OPERATOR)
        )
        named, rest = _record(pairs, readers)
        return kind(**named, extra=rest)
    named, rest = _record(pairs, {"id": _nullable(_whole)})
    return OtherSender(sender_type, named["id"], rest)


def _attributes(value: Any) -> tuple[UserAttribute, ...]:
    if type(value) is not list:
        raise _FaultError
    made, places = [], set()
    for position, pairs in enumerate(value):
        try:
            named, rest = _record(pairs, _ATTRIBUTE)
            made.append(UserAttribute(**named, extra=rest))
        except _FaultError as fault:
            places |= {f"[{position}]{place}" for place in fault.places}
    if places:
        raise _FaultError(*places)
    return tuple(made)


# --- values --------------------------------------------------------------------------------------


def _nullable(read: _Reader) -> _Reader:
    return lambda value: None if value is None else read(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _FaultError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _FaultError
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise _FaultError
    return value


_ISO_8601 = re.compile(
    r" *([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]{1,9}))?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2})?)? *"
)


def moment(value: Any) -> datetime:
    """The instant that a text names, cut to microseconds; UnsureError where opinions differ."""
    found = _ISO_8601.fullmatch(_text(value))
    if found is None:
        if value.strip()[:1].isdecimal() or value.strip()[:1] in ("+", "-"):
            raise UnsureError(value)
        raise _FaultError
    day, clock, fraction, sign, hours, minutes = found.groups()
    # A leap second, an offset of more than a day, fractions of a microsecond before 1970.
    if clock.endswith(":60") or int(hours or 0) > 23 or (day < "1970" and len(fraction or "") > 6):
        raise UnsureError(value)
    # Python 3.14 and later take it for the next midnight.
    if clock.startswith("24"):
        raise _FaultError
    try:
        local = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
        local += timedelta(microseconds=int((fraction or "0")[:6].ljust(6, "0")))
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        if int(minutes or 0) > 59:
            raise _FaultError
        return local - offset if sign != "-" else local + offset
    except (ValueError, OverflowError):
        raise _FaultError from None


def _repaired(value: Any) -> Any:
    """Half a surrogate pair becomes U+FFFD, wherever text is."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Pairs):
        return Pairs((_repaired(name), _repaired(held)) for name, held in value)
    return [_repaired(held) for held in value] if isinstance(value, list) else value


_TEXT, _MOMENT, _TRUTH = _nullable(_text), _nullable(moment), _nullable(_truth)
_ATTRIBUTE: dict[str, _Reader] = {"name": _TEXT, "value": _TEXT}
_USER: dict[str, _Reader] = {
    **dict.fromkeys(USER, _TEXT),
    **dict.fromkeys(("created_at", "updated_at", "online_at"), _MOMENT),
    "id": _whole,
    "user_attributes": _nullable(_attributes),
}
_MESSAGE: dict[str, _Reader] = {
    **dict.fromkeys(MESSAGE, _TEXT),
    **dict.fromkeys(("read_by_user", "read_by_operator", "auto_invitation"), _TRUTH),
    "id": _whole,
    "created_at": _MOMENT,
    "sender": lambda value: value,
}
_USER_SENDER: dict[str, _Reader] = {"id": _whole, "name": _TEXT, "email": _TEXT}
_OPERATOR: dict[str, _Reader] = {
    "id": _whole,
    **dict.fromkeys(("forename", "surname", "email", "picture_thumb_url"), _TEXT),
}
