"""Worlds as JSON lines."""

import json
import math
import re
from typing import Any

import pytest

from backread import UserSender
from backread.testing import MockServer, World
from helpers.raw_requests import Caller

LINES = (
    b'{"id": 7, "name": "Zo\\u00eb", "plan": {"seats": 2.50},'
    b' "messages": [{"id": 3, "body": "a  b"}]}\n'
    b'{"id": 5}\n'
)


def everything(world: World) -> list[Any]:
    return [
        (world.user(one), [world.message(one, each) for each in world.message_ids(one)])
        for one in world.user_ids()
    ]


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
        worlds = [
            World.from_jsonl(path),
            World.from_jsonl(str(path)),
            World.from_jsonl(text.encode()),
            World.from_jsonl(text.split("\n")),
            World.from_jsonl(lines),
            World.from_jsonl(raw),
        ]
    for back in worlds:
        assert back.to_jsonl() == text
        assert back.fingerprint() == worlds[0].fingerprint()
        assert everything(back) == everything(world)
    assert repr(worlds[0]) == "<World from JSON lines, users=29>"


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
        ([{"id": math.nan}], ValueError, "JSON"),
        ('{"id":1}', ValueError, "text.encode()"),
        (7, TypeError, "not iterable"),
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


def test_the_generator_has_a_version():
    assert World.generator_version == 2
