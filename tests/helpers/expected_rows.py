"""Rows read once more, with Python's json alone: what each face must make of an answer's text.

    rows = reference.rows(body, "users")            # ValueError where it is no JSON
    rows[0].sent                                    # the dict that as_dict=True must give
    rows[0].model                                   # the dataclass, None where the row has no id
    rows[0].odd_values                              # values of documented fields of another type
    reference.columns(rows[0].model)                # its row in an Arrow table

Slow and plain: the native module has faster ways to the same end.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
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


class _FaultError(Exception):
    """A value is not what its field holds."""


class Pairs(list[tuple[str, Any]]):
    """An object as sent, keys that come twice among it."""

    def last(self, name: str) -> Any:
        return dict(self).get(name)


@dataclass(frozen=True)
class Row:
    """One row: as sent, and as a model; without a whole number as its id it is none."""

    sent: Any
    model: Any
    odd_values: int


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
            parse_float=fraction,
        )
    )


def fraction(text: str) -> float | Decimal:
    number = float(text)
    return number if isfinite(number) else Decimal(text)


def rows(body: bytes, key: str, user_id: int = 42) -> list[Row]:
    """The rows of a list response; ValueError where it is none."""
    page = parse(body)
    held = page.last(key) if isinstance(page, Pairs) else None
    if type(held) is not list:
        raise ValueError("no list")
    return [row(value, key, user_id) for value in held]


def row(value: Any, key: str, user_id: int = 42) -> Row:
    try:
        _whole(value.last("id") if isinstance(value, Pairs) else None)
    except _FaultError:
        return Row(as_sent(value), None, 0)
    odd = _Odd()
    model = _user(value, odd) if key == "users" else _message(value, user_id, odd)
    return Row(as_sent(value), model, odd.count)


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
        name: json.loads(value, parse_float=fraction)
        if name.endswith("extra") and value is not None
        else value
        for name, value in row.items()
    }
    if held.get("user_attributes") is not None:
        held["user_attributes"] = [loaded(each) for each in held["user_attributes"]]
    return held


# --- records -------------------------------------------------------------------------------------

_Reader = Callable[[Any], Any]


@dataclass
class _Odd:
    """Counts the values of another type than documented."""

    count: int = 0


def _record(
    pairs: Pairs, readers: dict[str, _Reader], odd: _Odd
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The named fields, None where they are missing or odd, and the rest, odd values in it."""
    named: dict[str, Any] = dict.fromkeys(readers)
    rest: dict[str, Any] = {}
    for name, value in pairs:
        if name not in readers:
            rest[name] = as_sent(value)
            continue
        rest.pop(name, None)
        try:
            named[name] = readers[name](value)
        except _FaultError:
            named[name] = None
            if name != "id" or readers[name] is not _whole:
                rest[name] = as_sent(value)
    odd.count += sum(name in readers for name in rest)
    return named, rest


def _user(pairs: Any, odd: _Odd) -> User:
    named, rest = _record(pairs, _USER, odd)
    attributes: _Attributes | None = named["user_attributes"]
    if attributes is not None:
        named["user_attributes"] = tuple(attributes.made)
        odd.count += attributes.odd.count
    return User(**named, extra=rest)


def _message(pairs: Any, user_id: int, odd: _Odd) -> Message:
    named, rest = _record(pairs, _MESSAGE, odd)
    if named["sender"] is not None:
        named["sender"] = _sender(named["sender_type"], named["sender"], odd)
    return Message(**named, user_id=user_id, extra=rest)


def _sender(
    sender_type: str | None, pairs: Pairs, odd: _Odd
) -> UserSender | OperatorSender | OtherSender:
    try:
        _whole(pairs.last("id"))
        known = sender_type in ("user", "operator")
    except _FaultError:
        known = False
    if known:
        kind, readers = (
            (UserSender, _USER_SENDER) if sender_type == "user" else (OperatorSender, _OPERATOR)
        )
        named, rest = _record(pairs, readers, odd)
        return kind(**named, extra=rest)
    named, rest = _record(pairs, {"id": _nullable(_whole)}, odd)
    return OtherSender(sender_type, named["id"], rest)


@dataclass
class _Attributes:
    """The attributes of a user."""

    made: list[UserAttribute]
    odd: _Odd


def _attributes(value: Any) -> _Attributes:
    if type(value) is not list:
        raise _FaultError
    read = _Attributes([], _Odd())
    for each in value:
        named, rest = _record(_of(Pairs)(each), _ATTRIBUTE, read.odd)
        read.made.append(UserAttribute(**named, extra=rest))
    return read


# --- values --------------------------------------------------------------------------------------


def _nullable(read: _Reader) -> _Reader:
    return lambda value: None if value is None else read(value)


def _of(kind: type[Any]) -> _Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _FaultError
        return value

    return read


def _whole(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise _FaultError
    return value


def _moment(value: Any) -> datetime:
    """The instant that a text names. What else is read as one is tested in src/core/timestamp."""
    try:
        return datetime.fromisoformat(_of(str)(value)).astimezone(UTC)
    except ValueError:
        raise _FaultError from None


def _repaired(value: Any) -> Any:
    """Half a surrogate pair becomes U+FFFD, wherever text is."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Pairs):
        return Pairs((_repaired(name), _repaired(held)) for name, held in value)
    return [_repaired(held) for held in value] if isinstance(value, list) else value


_TEXT, _MOMENT, _TRUTH = _nullable(_of(str)), _nullable(_moment), _nullable(_of(bool))
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
    "sender": _nullable(_of(Pairs)),
}
_USER_SENDER: dict[str, _Reader] = {"id": _whole, "name": _TEXT, "email": _TEXT}
_OPERATOR: dict[str, _Reader] = {
    "id": _whole,
    **dict.fromkeys(("forename", "surname", "email", "picture_thumb_url"), _TEXT),
}
