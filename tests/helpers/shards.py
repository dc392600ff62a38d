"""Landing what a mock serves, and the rows that the shards of a plan must have together."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from backread import Client, landing, plan
from backread.testing import MockServer, World


def land(folder: Path, server: MockServer) -> landing.Committed:
    with Client(server.url, server.secret, server.vendor) as client:
        planned = plan(client, shards=2)
        landing.begin(folder, planned)
        landed = [landing.land(folder, shard, client=client) for shard in planned]
        return landing.commit(folder, planned.plan_id, landed)


def keys(rows: Any) -> Counter[tuple[int | None, int]]:
    return Counter((getattr(row, "user_id", None), row.id) for row in rows)


def expected(world: World, resource: str) -> Counter[tuple[int | None, int]]:
    if resource == "users":
        return Counter((None, user_id) for user_id in world.user_ids())
    return Counter(
        (user_id, one) for user_id in world.user_ids() for one in world.message_ids(user_id)
    )
