"""The journal of a lane: what was asked, and what is said of requests that make no sense."""

import socket
from datetime import UTC, datetime
from typing import Any

import pytest

from backread.testing import MockServer, UnexpectedRequestError, World
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
    assert m.calls().count == m.calls("any").count == 5
    assert {route: count for route, count in m.counts().items() if count} == {
        "users": 2, "user": 1, "messages": 1, "message": 1
    }  # fmt: skip
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
    # Those of forgotten requests raise instead of counting none.
    with pytest.raises(RuntimeError, match=r"keeps the last 5 requests.*forget\(\).*journal="):
        _ = short.calls("users", offset=0).count
    with pytest.raises(RuntimeError, match="keeps the last 5"):
        list(short.calls("users"))
    short.forget()
    assert (short.journal, sum(short.counts().values()), short.statuses()) == ((), 0, {})
    caller("/external/users?offset=1")
    assert short.calls("users", offset=0).count == 0
    assert [each.attempt for each in short.calls("users")] == [1]


def test_what_makes_no_sense_is_not_forgotten(short, by_hand):
    caller = by_hand(short)
    caller("/external/users?limit=0")
    for _ in range(8):
        caller("/external/users")
    assert [entry.number for entry in short.unexpected] == [1]
    # Of more than a thousand, the last thousand.
    for _ in range(1_000):
        caller("/external/users?limit=0")
    assert [entry.number for entry in short.unexpected] == [*range(10, 1_010)]
    short.forget()
    assert short.unexpected == ()


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


# --- what is said of a request that no client should send -----------------------------------------


@pytest.mark.backread(unexpected="allow")
@pytest.mark.parametrize(
    ("target", "changed", "lines"),
    [
        ("/external/users?page=2", {}, ["nearest: /external/users"]),
        (
            "/external/users?limit=100",
            {},
            ["nearest: /external/users?limit=99", "wanted: limit from 1 to 99, not '100'"],
        ),
        (
            "/external/users/042",
            {},
            [
                "nearest: /external/users/42\n",
                "wanted: a plain integer, without zeros in front, below 2^63, not '042'",
            ],
        ),
        ("/external/users?limit=05", {}, ["from 1 to 99, as a plain integer without zeros"]),
        ("/external/users?offset=" + "9" * 5000, {}, ["nearest: /external/users\n"]),
        ("/external/users/7/message/3", {}, ["nearest: /external/users/7/messages/3"]),
        ("/external/users", {"method": "DELETE"}, ["wanted: GET, not DELETE"]),
        ("/external/users", {"Accept": "*/*"}, ["wanted: the header Accept: application/vnd."]),
    ],
)
def test_the_nearest_request_is_named(backread_mock, by_hand, target, changed, lines):
    caller = by_hand(backread_mock)
    assert caller(target, **changed).status >= 400
    error = UnexpectedRequestError(backread_mock.unexpected, backread_mock.vendor)
    for line in lines:
        assert line in str(error)
    assert backread_mock.secret not in str(error)


def test_what_has_no_path_and_what_is_no_http_is_said():
    with MockServer() as server:
        head = b"GET users HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
        for sent in (head, b"hello\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
                connection.sendall(sent)
                with connection.makefile("rb") as answer:
                    assert answer.read().startswith(b"HTTP/1.1 40")
        # What is no HTTP is noted once it is answered.
        wait_for(lambda: len(server.unexpected) == 2)
        text = str(UnexpectedRequestError(server.unexpected, server.vendor))
    assert "request 1: GET (no path) -> 404 (unknown_path)" in text
    assert "request 2: not HTTP -> 400 (malformed)" in text
    assert text.count("wanted: an HTTP request with an absolute path") == 2
    assert "may also come from what another test left running" in text


@pytest.mark.backread(unexpected="allow")
def test_many_are_shown_in_part(backread_mock, by_hand):
    caller = by_hand(backread_mock)
    for _ in range(13):
        caller("/external")
    text = str(UnexpectedRequestError(backread_mock.unexpected, "acme"))
    assert text.startswith("13 requests were sent")
    assert text.count("request ") == 10
    assert text.endswith("and 3 more")
