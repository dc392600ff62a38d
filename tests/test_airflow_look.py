"""What the sensor for new messages can tell by a few requests; Airflow is not needed for that."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backread import Mirror
from backread.integrations.airflow.new_messages_query import (
    LEAST_REQUESTS,
    Look,
    Mark,
    look,
    mark_of,
    moment,
)
from backread.testing import Lane, World
from scripted_server import Request, answer

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def looked(lane: Lane, mark: Mark, max_requests: int = LEAST_REQUESTS) -> Look:
    """One look; it must have sent as many requests as it says."""

    async def main() -> Look:
        async with lane.async_client() as client:
            return await look(client, mark, max_requests)

    before = sum(lane.counts().values())
    found = asyncio.run(main())
    assert sum(lane.counts().values()) - before == found.requests <= max_requests
    return found


def write(lane: Lane, user_id: int, at: datetime) -> None:
    """A new message, whose time is its user's too."""
    text = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    [message_id] = lane.world.add_messages(user_id, 1)
    lane.world.edit_message(user_id, message_id, created_at=text)
    lane.world.edit_user(user_id, online_at=text)


@pytest.mark.backread(world=World(seed=7, users=250, messages_per_user=(0, 20)))
def test_the_first_look_marks_and_the_next_finds(backread_mock):
    first = looked(backread_mock, Mark())
    assert first.news is None
    assert first.mark.since is not None
    assert first.requests == 2
    assert looked(backread_mock, first.mark) == first
    user_id = backread_mock.world.user_ids()[-1]
    write(backread_mock, user_id, NOW)
    second = looked(backread_mock, first.mark)
    assert second.news == {
        "user_id": user_id,
        "created_at": NOW.isoformat(),
        "reason": "a new message",
    }


@pytest.mark.backread(world=World(seed=7, users=250, messages_per_user=(0, 20)))
def test_a_visit_is_no_message(backread_mock):
    mark = looked(backread_mock, Mark()).mark
    backread_mock.world.edit_user(backread_mock.world.user_ids()[3], online_at="2026-06-01T00:00Z")
    found = looked(backread_mock, mark)
    assert found.news is None
    assert found.requests == 3


@pytest.mark.backread(world=World(seed=7, users=20, messages_per_user=(150, 150)))
def test_the_end_of_a_long_list_is_looked_at(backread_mock):
    mark = looked(backread_mock, Mark()).mark
    write(backread_mock, backread_mock.world.user_ids()[3], NOW)
    found = looked(backread_mock, mark)
    assert found.news is not None
    assert found.requests == 3


@pytest.mark.backread(world=World(seed=7, users=250, messages_per_user=(0, 20)))
def test_users_in_the_middle_of_the_list_are_not_seen(backread_mock):
    """As the sensor's docstring says."""
    mark = looked(backread_mock, Mark()).mark
    write(backread_mock, backread_mock.world.user_ids()[120], NOW)
    assert looked(backread_mock, mark).news is None


@pytest.mark.backread(world=World(seed=7, users=60, messages_per_user=(1, 3)))
def test_requests_are_bounded(backread_mock):
    for user_id in backread_mock.world.user_ids():
        backread_mock.world.edit_user(user_id, online_at="2026-06-01T00:00Z")
    found = looked(backread_mock, Mark(since=NOW - timedelta(days=1)), max_requests=5)
    assert (found.news, found.requests) == (None, 5)


def test_a_mirror_says_what_is_known(backread_mock, tmp_path):
    pytest.importorskip("duckdb")
    mirror = Mirror(tmp_path / "chats")
    with backread_mock.client() as client:
        mirror.sync(client)
    mark = mark_of(mirror)
    latest = "select user_id, messages from conversations order by last_message_at desc limit 8"
    assert list(mark.watched) == mirror.sql(latest).fetchall()
    assert looked(backread_mock, mark).news is None
    user_id, count = mark.watched[-1]
    backread_mock.world.add_messages(user_id, 2)
    found = looked(backread_mock, mark).news
    assert found is not None
    assert found["user_id"] == user_id
    assert found["reason"] == f"{count + 2} messages, not {count}"


def serve(users: list[Any], messages: list[Any]) -> Callable[[Request], bytes]:
    """A service with these users, each of whom has these messages."""

    def serving(request: Request) -> bytes:
        name, rows = ("users", users) if request.path.endswith("users") else ("messages", messages)
        offset, limit = (int(request.query[each]) for each in ("offset", "limit"))
        sent = rows[offset : offset + limit]
        return answer(200, {"offset": offset, "limit": limit, "total": len(rows), name: sent})

    return serving


@pytest.mark.parametrize("position", [0, 150, 299])
def test_a_record_that_the_mirror_rejects_is_no_news(scripted, tmp_path, position):
    pytest.importorskip("duckdb")
    users: list[Any] = [{"id": 1000 + number, "name": "Ada"} for number in range(300)]
    users[position] = {"id": None, "name": "imported"}
    server = scripted(serve(users, []))
    mirror = Mirror(tmp_path / "chats")
    with server.client() as client:
        assert mirror.sync(client).rejects == 1
        mirror.sync(client)

    async def main() -> Look:
        async with server.async_client() as client:
            return await look(client, mark_of(mirror), LEAST_REQUESTS)

    assert asyncio.run(main()).news is None
    users.append({"id": 2000})
    news = asyncio.run(main()).news
    assert news is not None
    assert news["reason"] == "301 users, not 300"


def test_rows_without_an_id_are_passed_over(scripted):
    odd: list[Any] = [None, 7, {"id": "42"}, {"id": True}, {"id": -1}, {"id": 2**63}]
    users = [*odd, {"id": 42, "online_at": "2026-06-01t00:00:00z"}]
    messages = [
        {"id": None, "created_at": "2027-01-01T00:00:00Z"},
        {"id": 7, "created_at": "2026-06-01T00:00:00Z"},
        {"id": 8, "created_at": "0001-01-01T00:00:00+02:00"},
    ]
    server = scripted(serve(users, messages))

    async def main() -> Look:
        mark = Mark(since=NOW - timedelta(days=1), watched=((42, 3),))
        async with server.async_client() as client:
            return await look(client, mark, LEAST_REQUESTS)

    assert asyncio.run(main()).news == {
        "user_id": 42,
        "created_at": NOW.isoformat(),
        "reason": "a new message",
    }


@pytest.mark.parametrize(
    "time", ["2026-06-01 00:00:00 UTC", "2026-06-01 02:00:00 +0200", "2026-06-01T00:00:00.0000001Z"]
)
def test_times_are_read_as_the_client_reads_them(scripted, time):
    server = scripted(serve([{"id": 42, "online_at": time}], [{"id": 7, "created_at": time}]))

    async def main() -> Look:
        mark = Mark(since=NOW - timedelta(days=1), watched=((42, 3),))
        async with server.async_client() as client:
            return await look(client, mark, LEAST_REQUESTS)

    news = asyncio.run(main()).news
    assert news is not None
    assert news["created_at"] == NOW.isoformat()


def test_a_list_that_is_null_is_empty(scripted):
    def service(request: Request) -> bytes:
        key = "messages" if "/messages" in request.path else "users"
        rows = [{"id": 42}] if key == "users" else None
        total = 1 if key == "users" else 0
        return answer(200, {"limit": 99, "offset": 0, "total": total, key: rows})

    server = scripted(service)

    async def main() -> Look:
        mark = Mark(since=NOW - timedelta(days=1), watched=((42, 3),))
        async with server.async_client() as client:
            return await look(client, mark, LEAST_REQUESTS)

    assert asyncio.run(main()).news is None


@pytest.mark.backread(world=World(seed=7, users=30))
def test_users_that_are_gone_are_passed_over(backread_mock):
    user_id = backread_mock.world.user_ids()[0]
    backread_mock.world.remove_user(user_id)
    assert looked(backread_mock, Mark(since=NOW, watched=((user_id, 3),))).news is None
    assert [entry.status for entry in backread_mock.unexpected] == []


def test_a_mark_travels_as_json():
    for mark in (Mark(), Mark(since=NOW, watched=((42, 3), (7, 0)))):
        assert Mark.from_dict(json.loads(json.dumps(mark.to_dict()))) == mark


def test_times_are_utc_where_they_name_no_offset():
    assert moment("2026-06-01") == NOW
    assert moment("2026-06-01T02:00:00+02:00") == NOW
    with pytest.raises(ValueError, match="'yesterday' is not an ISO 8601 time"):
        moment("yesterday")
