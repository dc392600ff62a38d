"""What a run costs where little or nothing changed, and that it misses nothing all the same."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import MockServer, World
from helpers.mirrors import data_files, missed, rows, sync

pytest.importorskip("duckdb")

import duckdb

from backread.mirror import Mirror

USERS = 1_000
# One page of users each 99, one request a user, and one in a hundred for what may go wrong.
MOST = (USERS / 99 + USERS) * 1.01


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=8, users=USERS, messages_per_user=(0, 150))) as running:
        yield running


@pytest.fixture(scope="module")
def mirror(server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    mirror = Mirror(tmp_path_factory.mktemp("steady") / "chats")
    sync(mirror, server)
    return mirror


def stored(mirror: Mirror) -> list[tuple[Any, ...]]:
    """A digest of all rows with where they lie in the writer's tables."""
    with duckdb.connect(str(mirror.folder / "mirror.duckdb"), read_only=True) as connection:
        return [
            connection.execute(
                f"SELECT count(*), bit_xor(hash(rowid, held)) FROM {table} AS held"
            ).fetchone()  # type: ignore[misc]
            for table in ("users", "messages")
        ]


def test_unchanged_service_costs_a_request_a_user_and_rewrites_nothing(mirror, server):
    before = stored(mirror), data_files(mirror, "users"), data_files(mirror, "messages")
    report = sync(mirror, server)
    assert report.requests <= MOST
    assert report.lists_by_kind["end"] > USERS / 100
    assert (report.users_added, report.users_updated) == (0, 0)
    assert (report.messages_added, report.messages_updated) == (0, 0)
    assert (stored(mirror), data_files(mirror, "users"), data_files(mirror, "messages")) == before
    newest = "SELECT count(*) FROM messages JOIN runs ON last_seen_at = ended_at WHERE run_id = {}"
    assert rows(mirror, newest.format(report.run_id)) == [(server.world.total_messages,)]


def test_nothing_is_missed_where_one_user_in_a_hundred_changed(mirror, server):
    world, chance = server.world, random.Random(4)
    changed = chance.sample(world.user_ids(), USERS // 100)
    longest = sorted(world.user_ids(), key=lambda each: len(world.message_ids(each)))[-40:]
    changed[:10] = chance.sample(longest, 10)
    for user_id in changed[:25]:
        world.add_messages(user_id, chance.choice([1, 2, 5]))
    # A long list, and more than a page of new messages.
    world.add_messages(longest[-1], 130)
    read = set(changed[20:35]) | set(chance.sample(longest, 10))
    for user_id in read:
        for message_id in world.message_ids(user_id)[-4:]:
            message = world.message(user_id, message_id)
            if not (message["read_by_user"] and message["read_by_operator"]):
                world.edit_message(user_id, message_id, read_by_user=True, read_by_operator=True)
    for user_id in changed[35:45]:
        world.edit_user(user_id, name=f"Renamed {user_id}")
    gone = changed[45:]
    for user_id in gone:
        world.remove_user(user_id)
    world.add_users(5)
    assert missed(mirror, world)
    report = sync(mirror, server)
    assert missed(mirror, world) == []
    assert report.requests <= MOST
    # Whoever is gone stays until a full sync, and the rest is as it was.
    assert report.deleted == 0
    assert sync(mirror, server, mode="full").deleted >= len(gone)
    assert rows(mirror, "SELECT id FROM users WHERE deleted_at IS NOT NULL ORDER BY id") == sorted(
        (each,) for each in gone
    )
    assert missed(mirror, world) == []
    total = "SELECT count(*) FROM messages WHERE deleted_at IS NULL"
    assert rows(mirror, total) == [(world.total_messages,)]
