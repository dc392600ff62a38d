"""Large batches hold as many messages as the mirror's database stores together, and lose none."""

from collections import Counter

import pytest

from backread.mirror.database import ROWS_A_GROUP
from backread.testing import MockServer, World
from remembered import Remembered, given, rows_of

pa = pytest.importorskip("pyarrow")

USERS = 1_500


def test_large_batches_are_whole_groups_and_every_row_is_given_once():
    world = World(seed=5, users=USERS, messages_per_user=(150, 400))
    mirror = Remembered()
    sizes = []
    ids: Counter[tuple[int, int]] = Counter()
    ended: set[int] = set()
    with MockServer(world) as server, server.client() as client:
        run = client._sync_run(mirror.known(), mode="incremental", max_staleness=None)
        for batch in given(run):
            if batch.messages is not None:
                table = pa.table(batch.messages)
                sizes.append(table.num_rows)
                users = table["user_id"].to_pylist()
                ids.update(zip(users, table["id"].to_pylist(), strict=True))
                # A list's end never comes before one of its rows.
                assert ended.isdisjoint(users)
            ended.update(row["user_id"] for row in rows_of(batch.lists))
    assert set(ids.values()) == {1}
    assert len(ids) == world.total_messages > 12 * ROWS_A_GROUP
    assert ended == set(world.user_ids())
    large = [size for size in sizes[:-1] if size >= ROWS_A_GROUP]
    assert len(large) > 2
    assert all(size % ROWS_A_GROUP == 0 for size in large)
