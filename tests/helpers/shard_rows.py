"""The rows that the shards of a plan must have together."""

from __future__ import annotations

from collections import Counter
from typing import Any

from backread.testing import World


def keys(rows: Any) -> Counter[tuple[int | None, int]]:
    return Counter((getattr(row, "user_id", None), row.id) for row in rows)


def expected(world: World, resource: str) -> Counter[tuple[int | None, int]]:
    if resource == "users":
        return Counter((None, user_id) for user_id in world.user_ids())
    return Counter(
        (user_id, one) for user_id in world.user_ids() for one in world.message_ids(user_id)
    )
