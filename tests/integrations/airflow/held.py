"""Compares mirrors and landing folders with the world of a mock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backread import Mirror, landing
from backread.testing import World

__all__ = ["messages_landed", "messages_of", "mirror_holds"]

FIELDS = ("body", "read_by_user", "read_by_operator", "sender_type")


def messages_of(world: World) -> list[tuple[Any, ...]]:
    """Every message of a world: user, id and some fields, in order."""
    return sorted(
        (user_id, message_id, *(world.message(user_id, message_id)[name] for name in FIELDS))
        for user_id in world.user_ids()
        for message_id in world.message_ids(user_id)
    )


def mirror_holds(folder: Path, world: World) -> bool:
    """Whether a mirror has exactly the users and messages of a world, each once."""
    mirror = Mirror(folder)
    users = mirror.sql("SELECT id, name, email FROM users ORDER BY ALL").fetchall()
    messages = mirror.sql(f"SELECT user_id, id, {', '.join(FIELDS)} FROM messages").fetchall()
    expected = sorted(
        (user_id, world.user(user_id)["name"], world.user(user_id)["email"])
        for user_id in world.user_ids()
    )
    return users == expected and sorted(messages) == messages_of(world)


def messages_landed(folder: Path) -> list[tuple[Any, ...]]:
    """Every message of the only committed run of a landing folder, in order."""
    [committed] = landing.runs(folder)
    names = ["user_id", "id", *FIELDS]
    table = landing.dataset(folder, committed).to_table(columns=names)
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))
