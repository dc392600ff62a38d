"""Rows as dicts, made into models by calling the classes: what the native module must equal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from backread.models import (
    Message,
    OperatorSender,
    OtherSender,
    Sender,
    User,
    UserAttribute,
    UserSender,
)

Row = dict[str, Any]


def made_user(row: Row) -> User:
    attributes = row.get("user_attributes")
    return User(
        row["id"],
        row.get("name"),
        row.get("email"),
        row.get("reference"),
        _instant(row.get("created_at")),
        _instant(row.get("updated_at")),
        _instant(row.get("online_at")),
        row.get("last_url"),
        None
        if attributes is None
        else tuple(
            UserAttribute(one.get("name"), one.get("value"), _others(one, "name value"))
            for one in attributes
        ),
        _others(
            row,
            "id name email reference created_at updated_at online_at last_url user_attributes",
        ),
    )


def made_message(row: Row, user_id: int) -> Message:
    return Message(
        row["id"],
        row.get("body"),
        row.get("read_by_user"),
        row.get("read_by_operator"),
        _instant(row.get("created_at")),
        row.get("file_url"),
        row.get("auto_invitation"),
        row.get("sender_type"),
        _sender(row.get("sender_type"), row.get("sender")),
        user_id,
        _others(
            row,
            "id body read_by_user read_by_operator created_at file_url auto_invitation "
            "sender_type sender",
        ),
    )


def _sender(sender_type: str | None, sender: Row | None) -> Sender | None:
    if sender is None:
        return None
    named = sender.get("id") is not None
    if named and sender_type == "user":
        others = _others(sender, "id name email")
        return UserSender(sender["id"], sender.get("name"), sender.get("email"), others)
    if named and sender_type == "operator":
        return OperatorSender(
            sender["id"],
            sender.get("forename"),
            sender.get("surname"),
            sender.get("email"),
            sender.get("picture_thumb_url"),
            _others(sender, "id forename surname email picture_thumb_url"),
        )
    return OtherSender(sender_type, sender.get("id"), _others(sender, "id"))


def _others(row: Row, names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names.split()}


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
