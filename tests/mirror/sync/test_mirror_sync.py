"""What a sync puts into the mirror, and what a reader gets out of it."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backread.testing import MockServer, World
from helpers.api_rows import paged
from helpers.mirrors import data_files, rows, sync
from helpers.scripted_server import answer

pytest.importorskip("duckdb")

from backread.mirror import SyncProgress
from backread.mirror.published import ranges

USERS = 40


@pytest.fixture
def server() -> Iterator[MockServer]:
    """A world whose users fit in one response, so that the sweep over them is certified."""
    with MockServer(World(seed=3, users=USERS, messages_per_user=(0, 250))) as running:
        yield running


def test_first_sync_holds_every_row_with_every_field(mirror, server):
    report = sync(mirror, server)
    world = server.world
    assert (report.users, report.users_added) == (USERS, USERS)
    assert report.messages == report.messages_added == world.total_messages
    assert (report.run_id, report.mode, report.resumed) == (1, "incremental", False)
    assert report.requests == sum(server.counts().values())
    assert report.certificate == "snapshot"
    long = {each for each in world.user_ids() if len(world.message_ids(each)) > 99}
    assert report.uncertified_users == ()
    assert report.lists_by_certificate["snapshot"] == USERS - len(long)
    assert sum(report.lists_by_certificate.values()) == USERS
    assert report.lists_by_kind == {"whole": USERS}
    assert timedelta(0) < report.ended_at - report.started_at < timedelta(minutes=5)
    with server.client() as client:
        for user in client.users.list():
            held = mirror.conversation(user.id)
            assert held.user == user
            assert sorted(held, key=lambda each: each.id) == sorted(
                client.messages.list(user.id), key=lambda each: each.id
            )
    times = [each.created_at for each in held]
    assert times == sorted(times)  # type: ignore[type-var]


def test_rows_that_did_not_change_are_left_alone(mirror, server):
    sync(mirror, server)
    before = data_files(mirror, "messages"), data_files(mirror, "users")
    first = rows(mirror, "SELECT min(last_seen_at)::VARCHAR FROM messages")
    again = sync(mirror, server)
    # One request for the users and one for the messages of each.
    assert again.requests == 1 + USERS
    assert again.lists_by_kind["end"] > 0
    assert sum(again.lists_by_kind.values()) == USERS
    changes = (again.users_added, again.users_updated, again.messages_added, again.messages_updated)
    assert changes == (0, 0, 0, 0)
    assert (data_files(mirror, "messages"), data_files(mirror, "users")) == before
    # They were seen all the same.
    assert rows(mirror, "SELECT min(last_seen_at)::VARCHAR FROM messages") > first
    assert rows(mirror, "SELECT count(*) FROM runs") == [(2,)]


def test_second_sync_adds_and_updates(mirror, server, monkeypatch):
    monkeypatch.setattr(ranges, "FILE_BYTES", 4096)
    sync(mirror, server)
    before = data_files(mirror, "messages"), data_files(mirror, "users")
    world = server.world
    [new] = world.add_users(1)
    old = world.user_ids()[0]
    world.add_messages(old, 3)
    world.edit_user(world.user_ids()[1], name="Renamed")
    report = sync(mirror, server)
    came = len(world.message_ids(new))
    assert (report.users_added, report.messages_added) == (1, 3 + came)
    assert report.users_updated == 2  # the renamed one, and the one who was online again
    assert report.deleted == 0
    assert rows(mirror, "SELECT count(*) FROM users WHERE name = 'Renamed'") == [(1,)]
    assert rows(mirror, f"SELECT messages FROM conversations WHERE user_id = {new}") == [(came,)]
    # The messages of two users are in at most two files of many.
    after = data_files(mirror, "messages")
    assert 1 <= len(before[0] - after) <= 2
    assert len(before[0] & after) >= len(before[0]) - 2 > 2


def test_nothing_that_came_is_dropped_in_silence(mirror, scripted):
    users = {
        "limit": 99,
        "offset": 0,
        "total": 3,
        "users": [{"id": 5, "shoe_size": 43}, {"id": "six"}, "seven"],
    }
    said = {
        "id": 1,
        "body": None,
        "sender_type": "robot",
        "sender": {"id": 9, "model": "R2"},
        "mood": "good",
    }
    page = {"limit": 99, "offset": 0, "total": 1, "messages": [said]}
    server = scripted(answer(200, users), answer(200, page))
    report = sync(mirror, server)
    assert (report.users, report.rejects) == (1, 2)
    kept = rows(mirror, "SELECT resource, json, reason FROM rejects ORDER BY json")
    assert [(resource, json.loads(text)) for resource, text, _ in kept] == [
        ("users", "seven"),
        ("users", {"id": "six"}),
    ]
    assert all(reason for *_, reason in kept)
    held = mirror.conversation(5)
    assert held.user.extra == {"shoe_size": 43}
    assert held[0].extra == {"mood": "good"}
    assert held[0].sender_type == "robot"
    assert held[0].sender is not None
    assert held[0].sender.id == 9
    assert held[0].sender.extra == {"model": "R2"}


def test_a_record_that_does_not_fit_is_stored_once_wherever_it_is_in_its_page(mirror, scripted):
    sent: list[Any] = [{"id": "six"}, "seven"]
    server = scripted(
        lambda request: (
            paged(sent)(request)
            if request.path.endswith("/users")
            else paged([], key="messages")(request)
        )
    )
    for number in range(3):
        sent.insert(0, {"id": number})
        assert sync(mirror, server).rejects == 2
    kept = "SELECT json, reason, run_id, first_seen_at < last_seen_at FROM rejects ORDER BY json"
    assert rows(mirror, kept) == [
        ('"seven"', "$: not an object", 3, True),
        ('{"id": "six"}', "$.id: the id is not a 64-bit integer", 3, True),
    ]


def test_conversations_count_what_was_said(mirror, scripted):
    def said(number: int, minute: int, sender: str, **fields: Any) -> dict[str, Any]:
        return {
            "id": number,
            "body": f"text {number}",
            "created_at": f"2026-03-01T10:{minute:02}:00.000Z",
            "sender_type": sender,
            "sender": {"id": 1},
            "auto_invitation": False,
            "read_by_user": True,
            "read_by_operator": True,
            "file_url": None,
        } | fields

    messages = [
        said(1, 0, "operator", auto_invitation=True),
        said(2, 2, "user", read_by_operator=False),
        said(3, 3, "operator", auto_invitation=True),
        said(4, 7, "operator", read_by_user=False),
        said(5, 9, "user", file_url="https://example.com/a.png", read_by_operator=False),
    ]
    users = {"limit": 99, "offset": 0, "total": 2, "users": [{"id": 5, "name": "Ada"}, {"id": 6}]}
    page = {"limit": 99, "offset": 0, "total": len(messages), "messages": messages}
    empty = {"limit": 99, "offset": 0, "total": 0, "messages": []}

    def respond(request: Any) -> bytes:
        if request.path == "/external/users":
            return answer(200, users)
        return answer(200, page if "/users/5/" in request.path else empty)

    sync(mirror, scripted(respond))
    relation = mirror.sql(
        "SELECT * REPLACE (first_message_at::VARCHAR AS first_message_at, "
        "last_message_at::VARCHAR AS last_message_at) FROM conversations ORDER BY user_id"
    )
    spoken, silent = (dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall())
    assert spoken == {
        "user_id": 5,
        "name": "Ada",
        "email": None,
        "messages": 5,
        "user_messages": 2,
        "operator_messages": 1,
        "auto_invitations": 2,
        "files": 1,
        "first_message_at": "2026-03-01 10:00:00+00",
        "last_message_at": "2026-03-01 10:09:00+00",
        "last_sender_type": "user",
        "first_response_seconds": 300.0,
        "unread_by_user": 1,
        "unread_by_operator": 2,
        "complete": True,
    }
    assert (silent["user_id"], silent["messages"], silent["first_response_seconds"]) == (6, 0, None)
    text = str(mirror.conversation(5))
    assert text.splitlines()[0] == "Ada (user 5), 5 messages"
    assert "2026-03-01 10:09  user: text 5 [https://example.com/a.png]" in text


def test_progress_comes_after_each_commit(mirror, server):
    seen: list[SyncProgress] = []
    report = sync(mirror, server, on_progress=seen.append)
    assert [each.phase for each in seen if each.phase != "reading"] == [
        "finishing",
        "publishing",
        "finished",
    ]
    last = seen[-1]
    assert (last.users, last.messages, last.requests) == (
        report.users,
        report.messages,
        report.requests,
    )
    assert last.users_total == USERS
    assert [each.messages for each in seen] == sorted(each.messages for each in seen)


def test_report_travels(mirror, server):
    report = sync(mirror, server)
    assert pickle.loads(pickle.dumps(report)) == report
    assert hash(report) == hash(pickle.loads(pickle.dumps(report)))
    assert pickle.loads(pickle.dumps(mirror)) == mirror


def test_times_are_utc_whatever_the_machine_says(mirror, server, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    sync(mirror, server)
    [(text,)] = rows(mirror, "SELECT ended_at::VARCHAR FROM runs")
    assert text.endswith("+00")
    assert abs(datetime.fromisoformat(text) - datetime.now(UTC)) < timedelta(minutes=5)


def test_report_is_drawn_in_a_notebook(mirror, server):
    done = sync(mirror, server)
    html = done._repr_html_()
    assert "<table><caption>SyncReport: run 1 " in html
    assert f'>users_added</th><td dir="auto">{done.users_added}</td>' in html
    assert "snapshot" in html
    unproved = replace(done, uncertified_users=tuple(range(1, 5_001)))._repr_html_()
    assert "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4,990 more" in unproved
