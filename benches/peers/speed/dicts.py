"""The rows as the dictionaries that orjson makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson


def users(body: bytes) -> tuple[int, Sequence[dict[str, Any]]]:
    """A page of users from its bytes."""
    page = orjson.loads(body)
    return page["total"], page["users"]


def messages(body: bytes) -> tuple[int, Sequence[dict[str, Any]]]:
    """A page of messages from its bytes."""
    page = orjson.loads(body)
    return page["total"], page["messages"]


def id_of(user: dict[str, Any]) -> int:
    """A user's id."""
    return int(user["id"])
