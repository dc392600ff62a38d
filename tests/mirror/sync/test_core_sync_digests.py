"""A list whose one page, or whose end, is the same as the last time costs only its request."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from backread import Client
from backread.testing import Dialect, Fault, MockServer, World
from helpers.api_rows import message, paged, user
from helpers.in_memory_mirror import InMemoryMirror, given, rows_of
from helpers.scripted_server import Request

pytest.importorskip("pyarrow")

KEY = bytes(range(16))


def with_key(key: bytes = KEY) -> InMemoryMirror:
    mirror = InMemoryMirror()
    mirror.digest_key = key
    return mirror


def unchanged(mirror: InMemoryMirror) -> set[int]:
    return {user_id for user_id in mirror.done if mirror.lists[user_id]["unchanged"]}


def one_run(client: Client, mirror: InMemoryMirror, mode: str = "incremental") -> list[int]:
    """A whole run; the users whose messages were given, once for each row."""
    mirror.begin()
    users = []
    run = client._sync_run(mirror.known(), mode=mode, max_staleness=None)
    for batch in given(run):
        users += [row["user_id"] for row in rows_of(batch.messages)]
        mirror.commit(batch)
    return users


@pytest.fixture
def world() -> World:
    return World(seed=3, users=40, messages_per_user=(0, 20))


@pytest.mark.parametrize("mode", ["incremental", "full"])
def test_an_unchanged_list_is_not_decoded(world, mode):
    with MockServer(world) as server, server.client() as client:
        mirror = with_key()
        assert len(one_run(client, mirror, mode)) == len(mirror.messages) > 0
        assert unchanged(mirror) == set()
        before = dict(mirror.lists)
        server.forget()
        assert one_run(client, mirror, mode) == []
        assert unchanged(mirror) == set(world.user_ids())
        assert server.calls("messages").count == 40
    changing = ("started_at", "ended_at", "swept_at", "unchanged")
    for user_id, row in mirror.lists.items():
        assert {**row, **dict.fromkeys(changing)} == {**before[user_id], **dict.fromkeys(changing)}
        assert row["started_at"] > before[user_id]["ended_at"]
        assert row["started_at"] <= row["ended_at"] == row["swept_at"]
        assert (row["kind"], row["certificate"], len(row["digest"])) == ("whole", "snapshot", 16)


def test_what_changed_is_given_and_nothing_else(world):
    edited, grown, emptied, *_ = [
        each for each in world.user_ids() if len(world.message_ids(each)) > 2
    ]
    with MockServer(world) as server, server.client() as client:
        mirror = with_key()
        one_run(client, mirror)
        world.edit_message(edited, world.message_ids(edited)[0], body="another")
        world.add_messages(grown, 1)
        for message_id in world.message_ids(emptied):
            world.remove_message(emptied, message_id)
        assert set(one_run(client, mirror)) == {edited, grown}
        assert unchanged(mirror) == set(world.user_ids()) - {edited, grown, emptied}
        assert mirror.lists[emptied]["rows"] == 0
        assert mirror.differs(world) == []
        assert one_run(client, mirror) == []


def test_what_each_run_must_report_is_decoded_each_time(scripted):
    rows: dict[int, list[Any]] = {
        1: [message(11)],
        2: [message(21), message(22, body=5)],
        3: [message(31), 9],
        4: [message(41, body="\ud800")],
        5: [message(51), {**message(52), "id": "x"}],
        6: [message(61), message(61)],
        7: [message(71, surprise={"any": 1})],
    }

    def service(request: Request) -> bytes:
        if request.path == "/external/users":
            return paged([user(each) for each in rows])(request)
        return paged(rows[int(request.path.split("/")[3])], key="messages")(request)

    server = scripted(service)
    with Client(server.url, server.secret, server.vendor) as client:
        mirror = with_key()
        one_run(client, mirror)
        first = {each: row["reason"] for each, row in mirror.lists.items()}
        again = set(one_run(client, mirror))
    assert unchanged(mirror) == {1, 7}
    assert {2, 3, 4, 5, 6} <= again
    assert {each: row["reason"] for each, row in mirror.lists.items()} == first


def test_a_page_that_is_resent_or_too_large_is_read_as_without_digests(world):
    [large, flaky, *_] = [each for each in world.user_ids() if len(world.message_ids(each)) > 2]
    world.edit_message(large, world.message_ids(large)[0], body="x" * 60_000)
    with MockServer(world) as server:
        server.clock.virtual()
        server.on("messages", user=flaky).fail(Fault.status(500), times=1)
        with server.client(max_response_bytes=60_000) as client:
            mirror = with_key()
            one_run(client, mirror)
            assert mirror.lists[flaky]["requests"] == 2
            assert mirror.lists[flaky]["digest"] is not None
            assert mirror.lists[large]["digest"] is None
            assert "max_response_bytes" in mirror.lists[large]["reason"]
            again = one_run(client, mirror)
            assert flaky not in again
            assert large in again


USERS = 12


@pytest.fixture
def long_lists() -> World:
    return World(seed=5, users=USERS, messages_per_user=(120, 400))


@pytest.fixture(params=["id", "newest"])
def mock(request: pytest.FixtureRequest, long_lists: World) -> Iterator[MockServer]:
    """A service that shows its lists from one end or from the other."""
    with MockServer(long_lists, dialect=Dialect("documented", order=request.param)) as server:
        yield server


@pytest.fixture
def client(mock: MockServer) -> Iterator[Client]:
    with mock.client(max_retries=0) as client:
        yield client


@pytest.fixture
def mirror(client: Client) -> InMemoryMirror:
    """What one run over the lists left behind."""
    mirror = with_key()
    mirror.run(client)
    return mirror


def run(client: Client, mirror: InMemoryMirror) -> Counter[int]:
    """A whole run: how many messages of each user were given."""
    return Counter(one_run(client, mirror))


def newest(long_lists: World, user_id: int, place: int = 1) -> int:
    """The id of one of the newest messages."""
    return long_lists.message_ids(user_id)[-place]


def test_only_new_rows_are_given_if_the_known_ones_are_before_them(long_lists):
    with MockServer(long_lists) as server, server.client() as client:
        mirror = with_key()
        run(client, mirror)
        for added in (1, 9, 5):
            grown = long_lists.user_ids()[added]
            long_lists.add_messages(grown, added)
            assert run(client, mirror) == {grown: added}
        assert mirror.differs(long_lists) == []


def test_a_row_that_vanished_leads_to_a_whole_read(long_lists, mock, client, mirror):
    user_id = long_lists.user_ids()[0]
    long_lists.remove_message(user_id, newest(long_lists, user_id, 2))
    users = run(client, mirror)
    assert set(users) == {user_id}
    assert users[user_id] >= len(long_lists.message_ids(user_id))
    assert mirror.lists[user_id]["kind"] == "whole"
    assert not run(client, mirror)


def test_a_mirror_without_digests_is_given_the_rows_once(long_lists, mock, client, mirror):
    for row in mirror.lists.values():
        row["digest"] = None
    assert set(run(client, mirror)) == set(long_lists.user_ids())
    assert not run(client, mirror)
    mirror.digest_key = bytes(16)
    assert set(run(client, mirror)) == set(long_lists.user_ids())
    assert not run(client, mirror)


def test_a_list_that_failed_is_read_whole_again(long_lists, mock, client, mirror):
    user_id = long_lists.user_ids()[0]
    mock.on("messages", user=user_id).fail(Fault.status(500))
    run(client, mirror)
    assert mirror.lists[user_id]["digest"] is None
    mock.clear_faults()
    assert set(run(client, mirror)) == {user_id}
    assert not run(client, mirror)


@pytest.mark.parametrize("seed", range(3))
def test_any_changes_over_many_runs_are_found(seed, long_lists, mock, client, mirror):
    chance = random.Random(seed)
    for _ in range(6):
        for user_id in chance.sample(long_lists.user_ids(), 5):
            long_lists.add_messages(user_id, chance.choice([1, 1, 8, 95]))
            if chance.random() < 0.5:
                long_lists.remove_message(
                    user_id, chance.choice(long_lists.message_ids(user_id)[-9:])
                )
            long_lists.edit_message(
                user_id, newest(long_lists, user_id, chance.randint(1, 9)), body="new"
            )
        run(client, mirror)
        assert mirror.differs(long_lists) == []
