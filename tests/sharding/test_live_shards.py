"""Shards that name no users, as Spark keeps them: each reading is of what is there."""

import pickle
from collections import Counter
from typing import Any

import pytest

from backread import AuthenticationError, Client, ConfigurationError, IncompleteError
from backread.sharding.live import LiveShard, listed_ids, live_shards
from backread.testing import Lane
from helpers.api_rows import envelope, paged, user, users
from helpers.scripted_server import answer
from helpers.shards import expected, keys


@pytest.fixture(autouse=True)
def secret(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKREAD_API_SECRET", lane.secret)


def made(lane: Lane, **options: Any) -> list[LiveShard]:
    """The shards, as another process has them."""
    with lane.client() as client:
        shards = live_shards(client, **options)
    sent: list[LiveShard] = pickle.loads(pickle.dumps(shards))
    return sent


def read(shards: list[LiveShard], **options: Any) -> Counter[tuple[int | None, int]]:
    return keys(row for each in shards for row in each.read(**options))


@pytest.mark.parametrize(("resource", "strict"), [("users", True), ("messages", False)])
def test_each_reading_is_of_the_users_there_are(lane, resource, strict):
    shards = made(lane, resource=resource, shards=5)
    assert read(shards, strict=strict) == expected(lane.world, resource)
    lane.world.add_users(100)
    assert read(shards, strict=strict) == expected(lane.world, resource)
    for user_id in lane.world.user_ids()[::3]:
        lane.world.remove_user(user_id)
    lane.world.add_messages(lane.world.user_ids()[0], 3)
    # Those that went before the reading are no doubt of it.
    assert read(shards, strict=True) == expected(lane.world, resource)


def test_users_that_come_and_go_while_shards_are_read_are_in_one_of_them(lane):
    stayed = expected(lane.world, "messages")
    found: Counter[tuple[int | None, int]] = Counter()
    for shard in made(lane, resource="messages", shards=4):
        found += read([shard])
        lane.world.remove_user(lane.world.add_users(7)[0])
    assert not stayed - found
    assert set(found.values()) == {1}


def test_planning_live_shards_sends_one_request(lane):
    made(lane, resource="messages", shards=9)
    assert [(call.route, call.offset, call.limit) for call in lane.calls()] == [("users", 0, 1)]
    with pytest.raises(AuthenticationError), lane.client() as client:
        live_shards(Client(client.base_url, "mock_wrong", client.vendor), resource="users")


def test_number_of_live_shards(lane, scripted):
    assert len(made(lane, resource="messages")) == 1
    assert len(made(lane, resource="messages", shards=300)) == 300
    # The list of users is one walk, however many shards are requested.
    assert len(made(lane, resource="users", shards=300)) == 1
    lane.world.add_users(1_000)
    assert len(made(lane, resource="messages")) == 3

    def of_any(total: int | None) -> int:
        server = scripted(lambda request: answer(200, envelope(users(1), total=total)))
        with server.client() as client:
            return len(live_shards(client, resource="messages"))

    # As many as requests that a client has in flight.
    assert [of_any(total) for total in (None, 0, 100_000)] == [16, 1, 16]


def test_one_reading_of_the_list_serves_several_shards(lane):
    shards = made(lane, resource="messages", shards=5)
    with lane.client() as client:
        held = listed_ids(client, False)
    before = lane.calls("users").count
    listed = [each.read(listed=lambda *_: held) for each in shards]
    assert sum(len(listing.to_list()) for listing in listed) == lane.world.total_messages
    assert lane.calls("users").count == before


def test_a_strict_reading_needs_a_proved_list_of_users(scripted, monkeypatch):
    for odd in ({"id": None}, {"id": -4}):
        server = scripted(paged([*users(5), user(9, **odd)]))
        monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
        with server.client() as client:
            [shard] = live_shards(client, resource="messages", shards=1)
            with pytest.raises(IncompleteError, match=r"no usable id|has no integer id"):
                listed_ids(client, True)
            assert len(listed_ids(client, False)) == 5
        with pytest.raises(IncompleteError):
            shard.read(strict=True)


def test_live_shards_hold_no_secret(lane, monkeypatch, tmp_path):
    shards = made(lane, resource="messages", shards=2)
    for each in shards:
        assert lane.secret.encode() not in pickle.dumps(each) + repr(each).encode()
    assert len({each.plan_id for each in shards}) == 1
    assert made(lane, resource="users")[0].plan_id != shards[0].plan_id
    monkeypatch.delenv("BACKREAD_API_SECRET")
    said = r"shard 1 of 2 travels .* set BACKREAD_API_SECRET"
    with pytest.raises(ConfigurationError, match=said):
        shards[1].read()
    (tmp_path / "secret").write_text(lane.secret)
    assert read(shards, secret_file=tmp_path / "secret") == expected(lane.world, "messages")
