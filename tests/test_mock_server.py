"""The mock, asked by hand: as strict as the interface, its rows those of its world."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from backread.testing import MockServer, World
from by_hand import Answer, Caller


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=60, messages_per_user=(0, 150))) as running:
        yield running


@pytest.fixture
def ask(server: MockServer) -> Iterator[Caller]:
    caller = Caller(server)
    yield caller
    caller.connection.close()


def test_a_page_of_users_is_the_interfaces(server: MockServer, ask: Caller) -> None:
    answer = ask("/external/users?offset=10&limit=20")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert list(answer.json) == ["limit", "offset", "total", "users"]
    assert answer.json == {
        "limit": 20,
        "offset": 10,
        "total": 60,
        "users": [server.world.user(one) for one in server.world.user_ids()[10:30]],
    }


def test_a_page_of_messages_is_the_interfaces(server: MockServer, ask: Caller) -> None:
    world = server.world
    user_id = max(world.user_ids(), key=lambda one: len(world.message_ids(one)))
    ids = world.message_ids(user_id)
    answer = ask(f"/external/users/{user_id}/messages?limit=99")
    assert list(answer.json) == ["limit", "offset", "total", "messages"]
    assert answer.json["total"] == len(ids)
    assert answer.json["messages"] == [world.message(user_id, one) for one in ids[:99]]


def test_single_rows_are_bare(server: MockServer, ask: Caller) -> None:
    world = server.world
    user_id = next(one for one in world.user_ids() if world.message_ids(one))
    message_id = world.message_ids(user_id)[0]
    assert ask(f"/external/users/{user_id}").json == world.user(user_id)
    assert ask(f"/external/users/{user_id}/messages/{message_id}").json == world.message(
        user_id, message_id
    )


def test_past_the_end_is_an_empty_page_with_the_true_total(ask: Caller) -> None:
    for offset in (60, 10**9, 2**63 - 1):
        page = ask(f"/external/users?offset={offset}").json
        assert (page["users"], page["total"], page["offset"]) == ([], 60, offset)


def test_without_arguments_it_is_the_first_page(ask: Caller) -> None:
    page = ask("/external/users").json
    assert page["offset"] == 0
    assert 0 < page["limit"] < 100
    assert len(page["users"]) == page["limit"]


def expect_refusal(answer: Answer, status: int, *words: str) -> None:
    assert answer.status == status
    error = answer.json["error"]
    assert error["status"] == status
    assert error["guess"] is True
    for word in words:
        assert word in error["message"]


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic {secret}",
        "{secret}",
        "Bearer {secret}x",
    ],
)
def test_401_without_the_right_bearer(
    server: MockServer, ask: Caller, authorization: str | None
) -> None:
    given = authorization and authorization.format(secret=server.secret)
    answer = ask("/external/users", Authorization=given)
    expect_refusal(answer, 401, "Bearer")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert server.secret.encode() not in answer.body


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "*/*",
        "application/*",
        "application/json",
        "application/vnd.other.v1+json",
        "application/vnd.example.v2+json",
        "application/vnd.example.v1+json;q=0",
    ],
)
def test_406_without_the_versioned_media_type(ask: Caller, accept: str | None) -> None:
    expect_refusal(ask("/external/users", Accept=accept), 406, "application/vnd.example.v1+json")


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("limit=0", "limit"),
        ("limit=100", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("limit=", "limit"),
        ("limit=1.5", "limit"),
        ("offset=-1", "offset"),
        ("offset=x", "offset"),
        ("offset=99999999999999999999", "offset"),
        ("limit=5&limit=5", "limit"),
        ("page=2", "page"),
        ("limit=5&sort=name", "sort"),
        ("Limit=5", "Limit"),
    ],
)
def test_422_for_arguments_that_the_interface_rules_out(ask: Caller, query: str, word: str) -> None:
    expect_refusal(ask(f"/external/users?{query}"), 422, word)
    expect_refusal(ask(f"/external/users/42/messages?{query}"), 422, word)


def test_422_for_a_query_where_there_is_none(ask: Caller) -> None:
    expect_refusal(ask("/external/users/42?limit=5"), 422, "limit")
    expect_refusal(ask("/external/users/42/messages/1?x=1"), 422, "x")


@pytest.mark.parametrize("limit", [1, 99])
def test_the_limits_own_bounds_are_allowed(ask: Caller, limit: int) -> None:
    assert ask(f"/external/users?limit={limit}").json["limit"] == limit


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/external",
        "/users",
        "/external/users/",
        "/external/users/1",
        "/external/users/x",
        "/external/users/-1",
        "/external/users/042",
        "/external/users/42.0",
        "/external/users/1/messages",
        "/external/users/42/messages/1",
        "/external/users/42/messages/x",
        "/external/users/42/notes",
        "/external/users/99999999999999999999999",
        "/openapi.yaml",
    ],
)
def test_404_for_what_is_not_there(ask: Caller, target: str) -> None:
    expect_refusal(ask(target), 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("target", ["/external/users", "/external/users/42", "/openapi.json"])
def test_405_for_all_but_get(ask: Caller, method: str, target: str) -> None:
    answer = ask(target, method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"what?\r\n\r\n", 400),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: y\r\n" % n for n in range(200)) + b"\r\n", 431),
    ],
)
def test_what_is_not_http_is_told_so(server: MockServer, sent: bytes, status: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(sent)
        assert connection.recv(12) == b"HTTP/1.1 %d" % status


def test_the_checks_have_an_order(ask: Caller) -> None:
    """Path, method, secret, Accept, arguments, look-up."""
    wrong = {"Authorization": "Bearer wrong", "Accept": "*/*"}
    assert ask("/nowhere?limit=0", "POST", **wrong).status == 404
    assert ask("/external/users/1?limit=0", "POST", **wrong).status == 405
    assert ask("/external/users/1?limit=0", **wrong).status == 401
    assert ask("/external/users/1?limit=0", Accept="*/*").status == 406
    assert ask("/external/users/1?limit=0").status == 422
    assert ask("/external/users/1").status == 404


def test_each_answer_has_its_own_request_id(ask: Caller) -> None:
    answers = [ask("/external/users/42"), ask("/external/users/1"), ask("/external/users/42")]
    assert len({one.headers["x-request-id"] for one in answers}) == 3


def test_requests_are_counted_by_route_and_by_status() -> None:
    with MockServer(World(users=3)) as server:
        ask = Caller(server)
        before = server.counts()
        assert before == dict.fromkeys(before, 0)
        for target in (
            "/external/users",
            "/external/users/42",
            "/external/users/1",
            "/external/users/42/messages",
            "/external/users/42/messages/1",
            "/nowhere",
            "/openapi.json",
            "/external/users?limit=0",
        ):
            ask(target)
        ask("/external/users", Authorization=None)
        assert server.counts() == {
            "users": 3,
            "user": 2,
            "messages": 1,
            "message": 1,
            "openapi": 1,
            "other": 1,
        }
        assert server.statuses() == {200: 4, 401: 1, 404: 3, 422: 1}
        ask.connection.close()
