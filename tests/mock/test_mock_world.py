"""Worlds: rows by counter, in the interface's shape, and changes on top."""

import copy
import json
import pickle
import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from backread import UserSender
from backread.testing import MockServer, World
from helpers.raw_requests import Caller


def rows(world: World, count: int | None = None) -> list[Any]:
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
        ({"messages_per_user": (0, 1_000_001)}, "messages_per_user"),
        ({"until": NOON.replace(tzinfo=None)}, "until: must be a datetime with a time zone"),
        ({"until": datetime(2009, 1, 1, tzinfo=UTC)}, "until: must be from 2010 to 2199"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused(arguments, name):
    with pytest.raises(ValueError, match=name):
        World(**arguments)


def test_what_is_not_there_is_a_key_error():
    world = World(users=1, messages_per_user=1)
    assert (world.messages_per_user, world.total_messages) == ((1, 1), 1)
    for missing in (
        lambda: world.message(42, 1),
        lambda: world.remove_user(1),
        lambda: world.add_messages(1),
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


# --- worlds as JSON lines -------------------------------------------------------------------------


LINES = (
    b'{"id": 7, "name": "Zo\\u00eb", "plan": {"seats": 2.50},'
    b' "messages": [{"id": 3, "body": "a  b"}]}\n'
    b'{"id": 5}\n'
)


def test_a_world_is_written_and_read_back_to_the_byte(tmp_path):
    world = World(seed=9, users=30, messages_per_user=(0, 90))
    world.edit_user(42, name='"\u2028\n', rating=1.50, tags=[None, "ü"])
    world.remove_user(world.user_ids()[3])
    world.add_messages(42, 70)
    path = tmp_path / "world.jsonl"
    world.to_jsonl(path)
    text = world.to_jsonl()
    assert path.read_text(encoding="utf-8") == text
    assert [one.name for one in tmp_path.iterdir()] == ["world.jsonl"]
    with path.open(encoding="utf-8") as lines, path.open("rb") as raw:
        for source in (path, str(path), text.encode(), text.split("\n"), lines, raw):
            back = World.from_jsonl(source)
            assert back.to_jsonl() == text
            assert rows(back) == rows(world)
    assert repr(back) == "<World from JSON lines, users=29>"


def test_given_rows_are_served_as_they_were_given():
    world = World.from_jsonl(LINES)
    assert (world.users, world.total_messages, world.messages_per_user) == (2, 1, (0, 1))
    with MockServer(world) as server, server.client() as client:
        ask = Caller(server)
        body = ask("/external/users/7").body
        ask.connection.close()
        assert body == rb'{"id":7,"name":"Zo\u00eb","plan":{"seats":2.50}}'
        assert [one.id for one in client.users.list()] == [7, 5]
        assert client.messages.get(7, 3).body == "a  b"
        [new] = world.add_users()
        assert new > 7
        assert min(world.add_messages(7, 20)) > 3
        senders = {type(one.sender).__name__: one.sender for one in client.messages.list(7)}
        assert senders["UserSender"] == UserSender(id=7, name="Zoë", email=None)
        assert client.users.get(7).updated_at is not None


def test_lines_are_made_from_anything_that_writes_json():
    users = [{"id": number, "messages": [{"id": 1}, {"id": 2}]} for number in range(3)]
    for lines in (users, (json.dumps(user) for user in users)):
        world = World.from_jsonl(lines)
        assert [world.message_ids(one) for one in world.user_ids()] == [[1, 2]] * 3
    assert World.from_jsonl([]).total_users == 0
    assert World.from_jsonl('\ufeff{"id": 3}\n'.encode()).user_ids() == [3]


@pytest.mark.parametrize(
    ("lines", "error", "text"),
    [
        ([b"", b"{"], ValueError, "line 2: EOF while parsing"),
        ([[1]], TypeError, "each must be a dict, or JSON text as str or bytes, not list"),
        ('{"id":1}', ValueError, "text.encode()"),
    ],
)
def test_what_is_no_world_is_refused_with_the_reason(lines, error, text):
    with pytest.raises(error, match=re.escape(text)):
        World.from_jsonl(lines)


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path):
    missing = tmp_path / "no" / "world.jsonl"
    with pytest.raises(FileNotFoundError, match=r"world\.jsonl"):
        World.from_jsonl(missing)
    with pytest.raises(FileNotFoundError, match=r"world\.jsonl"):
        World().to_jsonl(missing)
    with pytest.raises(IsADirectoryError):
        World().to_jsonl(tmp_path)
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"[]")
    with pytest.raises(ValueError, match=r"broken\.jsonl: line 1: "):
        World.from_jsonl(broken)
    assert list(tmp_path.iterdir()) == [broken]
