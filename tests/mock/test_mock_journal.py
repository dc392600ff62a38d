"""The journal of a lane: what was asked, in what order, and how often."""

import socket
from datetime import UTC, datetime
from typing import Any

import pytest

from backread.testing import MockServer, World
from helpers.waiting import wait_for


def test_an_entry_says_what_was_asked_and_answered(face, backread_mock):
    m = backread_mock
    m.clock.virtual(datetime(2026, 5, 1, tzinfo=UTC))
    m.on("users", offset=99).fail("status(503)", times=1)
    client = face.client(m)
    face.call(client.users.page, 99, 50)
    refused, answered = m.journal
    assert (refused.number, refused.method, refused.route) == (1, "GET", "users")
    assert refused.at == datetime(2026, 5, 1, tzinfo=UTC)
    assert answered.at > refused.at
    assert sorted(refused.path.partition("?")[2].split("&")) == ["limit=50", "offset=99"]
    assert (refused.offset, refused.limit, refused.attempt) == (99, 50, 1)
    assert (refused.status, refused.rows, refused.faults) == (
        503,
        None,
        ("users offset=99: status(503) x1",),
    )
    assert (answered.status, answered.rows, answered.attempt, answered.faults) == (200, 50, 2, ())
    assert (answered.user, answered.message, answered.unexpected) == (None, None, None)
    assert str(refused) == f"request 1: GET {refused.path} -> 503 (users offset=99: status(503) x1)"


def test_calls_are_counted_by_all_that_tells_them_apart(face, backread_mock):
    m = backread_mock
    user_id = next(each for each in m.world.user_ids() if m.world.message_ids(each))
    message_id = m.world.message_ids(user_id)[0]
    client = face.client(m)
    face.call(client.users.page, 0, 5)
    face.call(client.users.page, 5, 5)
    face.call(client.users.get, user_id)
    face.call(client.messages.page, user_id, 0, 5)
    face.call(client.messages.get, user_id, message_id)
    assert m.calls().count == 5
    assert m.calls("any").count == 5
    assert m.calls("users").count == 2
    assert m.calls("users", offset=5).count == 1
    assert m.calls("messages", user=user_id).count == 1
    assert m.calls("message", user=user_id, message=message_id).count == 1
    assert m.calls("any", user=user_id).count == 3
    assert m.calls(status=200).count == 5
    assert m.calls(status=404).count == m.calls("users", status=404).count == 0
    assert m.on("user", user=user_id).calls.count == 1
    assert [each.offset for each in m.calls("users")] == [0, 5]
    assert m.calls("users")[-1].offset == 5
    assert [each.offset for each in m.calls("users")[:1]] == [0]
    assert len(m.calls("user")) == 1
    assert not m.calls("user", user=user_id + 1)


@pytest.mark.parametrize(
    ("route", "parts", "problem"),
    [
        ("user", {"offset": 3}, "requests of the route user have no offset"),
        ("users", {"user": 3}, "requests of the route users have no user"),
        ("usres", {}, "there is no route 'usres'; there are users, user, messages, message"),
        ("users", {"offset": -1}, "offset must be 0 or more, not -1"),
    ],
)
def test_requests_that_cannot_be_are_a_value_error(backread_mock, route, parts, problem):
    with pytest.raises(ValueError, match=problem):
        backread_mock.calls(route, **parts)
    with pytest.raises(ValueError, match=problem):
        backread_mock.on(route, **parts)


@pytest.fixture
def short() -> Any:
    with MockServer(World(users=3), journal=5) as server:
        yield server


def test_a_journal_that_is_full_counts_on(short, by_hand):
    caller = by_hand(short)
    for offset in range(8):
        caller(f"/external/users?offset={offset}")
    assert [entry.number for entry in short.journal] == [4, 5, 6, 7, 8]
    assert short.calls().count == short.calls("users").count == short.calls(status=200).count == 8


def test_calls_of_forgotten_requests_raise_instead_of_counting_none(short, by_hand):
    caller = by_hand(short)
    for offset in range(8):
        caller(f"/external/users?offset={offset}")
    with pytest.raises(RuntimeError, match=r"keeps the last 5 requests.*forget\(\).*journal="):
        _ = short.calls("users", offset=0).count
    with pytest.raises(RuntimeError, match="keeps the last 5"):
        list(short.calls("users"))
    short.forget()
    caller("/external/users?offset=1")
    assert short.calls("users", offset=0).count == 0
    assert len(list(short.calls("users"))) == 1


def test_what_makes_no_sense_is_not_forgotten(short, by_hand):
    caller = by_hand(short)
    caller("/external/users?limit=0")
    for _ in range(8):
        caller("/external/users")
    assert [entry.number for entry in short.unexpected] == [1]
    short.forget()
    assert short.unexpected == ()


def test_forget_empties_the_journal_and_its_counts(backread_mock, by_hand):
    m = backread_mock
    caller = by_hand(m)
    caller("/external/users")
    caller("/external/users")
    assert [entry.attempt for entry in m.journal] == [1, 2]
    m.forget()
    assert (m.journal, sum(m.counts().values()), m.statuses()) == ((), 0, {})
    caller("/external/users")
    assert [entry.attempt for entry in m.journal] == [1]


@pytest.mark.backread(unexpected="allow")
def test_unexpected_requests_are_those_no_client_should_send(backread_mock, by_hand):
    m = backread_mock
    m.on("users").fail("status(422)", times=1)
    caller = by_hand(m)
    caller("/external/users")
    caller("/external/users/999999999")
    assert m.unexpected == ()
    caller("/external/users?limit=0")
    caller("/external/users", Accept="*/*")
    caller("/external/users", method="POST")
    caller("/external")
    assert [each.unexpected for each in m.unexpected] == [
        "invalid_limit",
        "not_acceptable",
        "wrong_method",
        "unknown_path",
    ]


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 431), (b"?\r\n\r\n", 400)],
)
def test_what_is_not_http_is_recorded_with_the_status_it_got(backread_server, sent, status):
    before = backread_server.calls().count
    with socket.create_connection(("127.0.0.1", backread_server.port), timeout=60) as connection:
        connection.sendall(sent)
        assert connection.recv(12) == b"HTTP/1.1 %d" % status
    wait_for(lambda: backread_server.calls().count > before)
    assert list(backread_server.journal)[-1].status == status


def test_the_last_thousand_requests_that_make_no_sense_are_kept(short, by_hand):
    caller = by_hand(short)
    for _ in range(1_001):
        caller("/external/users?limit=0")
    assert [entry.number for entry in short.unexpected] == [*range(2, 1_002)]
