"""Landing what a mock serves."""

from __future__ import annotations

from pathlib import Path

from backread import Client, landing, plan
from backread.testing import MockServer


def land(folder: Path, server: MockServer) -> landing.Committed:
    with Client(server.url, server.secret, server.vendor) as client:
        planned = plan(client, shards=2)
        landing.begin(folder, planned)
        landed = [landing.land(folder, shard, client=client) for shard in planned]
        return landing.commit(folder, planned.plan_id, landed)
