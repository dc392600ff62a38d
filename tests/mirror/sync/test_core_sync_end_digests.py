"""Of a list longer than a page, the rows shown again are given only if one of them changed."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from backread import Client
from backread.testing import Dialect, Fault, MockServer, World
from helpers.in_memory_mirror import InMemoryMirror, given, rows_of

pytest.importorskip("pyarrow")

KEY = bytes(range(16))
USERS = 12


@pytest.fixture
def world() -> World:
    return World(seed=5, users=USERS, messages_per_user=(120, 400))


@pytest.fixture(params=["id", "newest"])
def mock(request: pytest.FixtureRequest, world: World) -> Iterator[MockServer]:
    """A service that shows its lists from one end or from the other."""
    with MockServer(world, dialect=Dialect("documented", order=request.param)) as server:
        yield server


@pytest.fixture
def client(mock: MockServer) -> Iterator[Client]:
    with mock.client(max_retries=0) as client:
        yield client


@pytest.fixture
def mirror(client: Client) -> InMemoryMirror:
    """What one run over the world left behind."""
    mirror = InMemoryMirror()
    mirror.digest_key = KEY
    mirror.run(client)
    return mirror


def run(client: Client, mirror: InMemoryMirror) -> tuple[Counter[int], int]:
    """A whole run: how many messages of each user were given, and how many were skipped."""
    mirror.begin()
    users: Counter[int] = Counter()
    skipped = 0
    reading = client._sync_run(mirror.known(), mode="incremental", max_staleness=None)
    for batch in given(reading):
        users.update(row["user_id"] for row in rows_of(batch.messages))
        skipped += batch.rows_skipped
        mirror.commit(batch)
    return users, skipped


def newest(world: World, user_id: int, place: int = 1) -> int:
    """The id of one of the newest messages."""
    return world.message_ids(user_id)[-place]


def test_only_new_rows_are_given_if_the_known_ones_are_before_them(world):
    with MockServer(world) as server, server.client() as client:
        mirror = InMemoryMirror()
        mirror.digest_key = KEY
        run(client, mirror)
        for added in (1, 9, 5):
            grown = world.user_ids()[added]
            world.add_messages(grown, added)
            assert run(client, mirror)[0] == {grown: added}
        assert mirror.differs(world) == []


def test_a_row_that_vanished_leads_to_a_whole_read(world, mock, client, mirror):
    user_id = world.user_ids()[0]
    world.remove_message(user_id, newest(world, user_id, 2))
    users, _ = run(client, mirror)
    assert set(users) == {user_id}
    assert users[user_id] >= len(world.message_ids(user_id))
    assert mirror.lists[user_id]["kind"] == "whole"
    assert not run(client, mirror)[0]


def test_a_mirror_without_digests_is_given_the_rows_once(world, mock, client, mirror):
    for row in mirror.lists.values():
        row["digest"] = None
    assert set(run(client, mirror)[0]) == set(world.user_ids())
    assert not run(client, mirror)[0]
    mirror.digest_key = bytes(16)
    assert set(run(client, mirror)[0]) == set(world.user_ids())
    assert not run(client, mirror)[0]


def test_a_list_that_failed_is_read_whole_again(world, mock, client, mirror):
    user_id = world.user_ids()[0]
    mock.on("messages", user=user_id).fail(Fault.status(500))
    run(client, mirror)
    assert mirror.lists[user_id]["digest"] is None
    mock.clear_faults()
    assert set(run(client, mirror)[0]) == {user_id}
    assert not run(client, mirror)[0]


@pytest.mark.parametrize("seed", range(3))
def test_any_changes_over_many_runs_are_found(seed, world, mock, client, mirror):
    chance = random.Random(seed)
    for _ in range(6):
        for user_id in chance.sample(world.user_ids(), 5):
            world.add_messages(user_id, chance.choice([1, 1, 8, 95]))
            if chance.random() < 0.5:
                world.remove_message(user_id, chance.choice(world.message_ids(user_id)[-9:]))
            world.edit_message(user_id, newest(world, user_id, chance.randint(1, 9)), body="new")
        run(client, mirror)
        assert mirror.differs(world) == []
