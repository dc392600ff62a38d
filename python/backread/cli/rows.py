"""JSON objects as rows of columns, for ``--format table`` and ``csv``.

The columns are those of the mirror: the fields of interface 2, a message's sender in the columns
``sender_…``, whatever the interface does not name as JSON in ``extra`` and ``sender_extra``.
"""

from __future__ import annotations

import json
from typing import Any

from backread.cli.text import escaped
from backread.mirror.schema import MESSAGES, USERS

__all__ = ["MESSAGE_COLUMNS", "USER_COLUMNS", "as_json", "message_row", "user_row", "with_user"]

USER_COLUMNS = USERS.names
MESSAGE_COLUMNS = MESSAGES.names

SENDER = "sender_"


def user_row(_: int | None, sent: dict[str, Any]) -> list[object]:
    """One user's values in the order of USER_COLUMNS; None for what is null or missing."""
    named = set(USER_COLUMNS) - {"extra"}
    return [*(sent.get(name) for name in USER_COLUMNS[:-1]), _rest(sent, named)]


def message_row(user_id: int | None, sent: dict[str, Any]) -> list[object]:
    """One message's values in the order of MESSAGE_COLUMNS."""
    given = sent.get("sender")
    sender = given if isinstance(given, dict) else {}
    fields = {
        name.removeprefix(SENDER)
        for name in MESSAGE_COLUMNS
        if name.startswith(SENDER) and name not in ("sender_type", "sender_extra")
    }
    named = {name for name in MESSAGE_COLUMNS if not name.startswith(SENDER)}
    values: dict[str, object] = {name: sent.get(name) for name in named}
    values.update({f"{SENDER}{name}": sender.get(name) for name in fields})
    values["user_id"] = user_id
    values["sender_type"] = sent.get("sender_type")
    values["sender_extra"] = _rest(sender, fields)
    values["extra"] = _rest(sent, (named - {"user_id", "extra"}) | {"sender", "sender_type"})
    return [values[name] for name in MESSAGE_COLUMNS]


def with_user(user_id: int | None, sent: Any) -> Any:
    """A message as sent, with its user's id in front of its own fields."""
    named = {"user_id": user_id}
    return named | sent | named if isinstance(sent, dict) else sent


def as_json(value: object) -> str:
    """Any JSON value on one line, in its own script; what is not seen is escaped."""
    return escaped(json.dumps(value, ensure_ascii=False))


def _rest(sent: dict[str, Any], named: set[str]) -> str | None:
    rest = {name: value for name, value in sent.items() if name not in named}
    return as_json(rest) if rest else None
