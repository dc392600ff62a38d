"""Worlds: rows by counter, in the interface's shape, and changes on top."""

import copy
import pickle
import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from backread.testing import MockServer, World
from helpers.raw_requests import Caller


def rows(world: World, count: int) -> list[Any]:
    return [
        (world.user(one), [world.message(one, each) for each in world.message_ids(one)])
        for one in world.user_ids()[:count]
    ]


def test_a_world_of_millions_costs_nothing_to_make():
    began = time.process_time()
    world = World(seed=1, users=10_000_000, messages_per_user=(0, 500))
    with MockServer(world) as server:
        ask = Caller(server)
        page = ask("/external/users?offset=9999990&limit=99").json
        took = time.process_time() - began
        ask.connection.close()
    assert (page["total"], len(page["users"])) == (10_000_000, 10)
    assert took < 1


def test_a_change_shows_in_the_next_answer():
    world = World(seed=4, users=5, messages_per_user=(3, 3))
    fingerprint = world.fingerprint()
    with MockServer(world) as server, server.client() as client:
        assert len(list(client.users.list())) == 5
        new = world.add_users(2)
        assert [one.id for one in client.users.list()][-2:] == new
        [added] = world.add_messages(42)
        assert [one.id for one in client.messages.list(42)][-1] == added
        world.edit_user(42, name="Ada", tags=["x"], email=None)
        read = client.users.get(42)
        assert (read.name, read.email, read.extra) == ("Ada", None, {"tags": ["x"]})
        world.edit_message(42, added, body="changed", sender_type="bot")
        assert client.messages.get(42, added).body == "changed"
        world.remove_message(42, added)
        assert added not in [one.id for one in client.messages.list(42)]
        world.remove_user(new[0])
        assert new[0] not in [one.id for one in client.users.list()]
        assert world.total_users == 6
    assert world.fingerprint() != fingerprint


NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_worlds_with_one_end_are_the_same():
    def made(until):
        return World(seed=7, users=9, until=until)

    elsewhere = NOON.astimezone(timezone(timedelta(hours=9)))
    assert rows(made(NOON), 9) == rows(made(elsewhere), 9) == rows(made(NOON).copy(), 9)
    assert made(NOON).fingerprint() == made(elsewhere).fingerprint()
    assert made(NOON).fingerprint() != made(NOON + timedelta(days=1)).fingerprint()
    assert made(None).fingerprint() == World(seed=7, users=9).fingerprint()
    assert eval(repr(made(NOON)), {"World": World, "datetime": __import__("datetime")}).until


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"seed": -1}, "seed"),
        ({"users": -1}, "users"),
        ({"users": "many"}, "users"),
        ({"messages_per_user": (5, 1)}, "messages_per_user"),
        ({"messages_per_user": -1}, "messages_per_user"),
        ({"messages_per_user": (0, 1_000_001)}, "messages_per_user"),
        ({"users": 2**31 + 1}, "users"),
        ({"until": NOON.replace(tzinfo=None)}, "until: must be a datetime with a time zone"),
        ({"until": date(2026, 11, 23)}, "until"),
        ({"until": datetime(2009, 1, 1, tzinfo=UTC)}, "until: must be from 2010 to 2199"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused(arguments, name):
    with pytest.raises(ValueError, match=name):
        World(**arguments)


def test_one_number_of_messages_is_every_users():
    world = World(users=3, messages_per_user=30)
    assert world.messages_per_user == (30, 30)
    assert world.total_messages == 90


def test_what_is_not_there_is_a_key_error():
    world = World(users=1, messages_per_user=(1, 1))
    for missing in (
        lambda: world.user(1),
        lambda: world.message(42, 1),
        lambda: world.message_ids(1),
        lambda: world.remove_user(1),
        lambda: world.add_messages(1),
        lambda: world.edit_user(1, name="x"),
    ):
        with pytest.raises(KeyError, match="1"):
            missing()
    with pytest.raises(ValueError, match="id"):
        world.edit_user(42, id=5)


def test_a_world_can_be_copied_and_pickled():
    until = datetime(2024, 5, 1, tzinfo=UTC)
    plain = World(seed=7, users=2_000_000, messages_per_user=(1, 3), until=until)
    changed = World(seed=7, users=5)
    changed.add_messages(42, 2)
    changed.edit_user(42, name="Ada")
    for world in (plain, changed):
        for make in (copy.copy, copy.deepcopy):
            assert make(world).fingerprint() == world.fingerprint()
    assert len(pickle.dumps(plain)) < 500
    assert pickle.loads(pickle.dumps(plain)).fingerprint() == plain.fingerprint()
    assert pickle.loads(pickle.dumps(changed)).to_jsonl() == changed.to_jsonl()
    other = copy.copy(changed)
    other.remove_user(42)
    assert changed.user(42)["name"] == "Ada"
