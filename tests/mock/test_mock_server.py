"""The mock, asked by hand: as strict as the interface, its rows those of its world."""

import contextlib
import http.client
import re
import socket
from collections.abc import Iterator

import pytest

from backread.testing import MockServer, World
from helpers.raw_requests import Answer, Caller

MEDIA_TYPE = "application/vnd.example.v1+json"


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=60, messages_per_user=(0, 150))) as running:
        yield running


@pytest.fixture
def ask(server: MockServer) -> Iterator[Caller]:
    caller = Caller(server)
    yield caller
    caller.connection.close()


@pytest.mark.parametrize(("offset", "limit"), [(10, 20), (59, 99), (0, 99)])
def test_a_page_of_users_is_the_interfaces(server, ask, offset, limit):
    answer = ask(f"/external/users?offset={offset}&limit={limit}")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert list(answer.json) == ["limit", "offset", "total", "users"]
    assert answer.json == {
        "limit": limit,
        "offset": offset,
        "total": 60,
        "users": [server.world.user(one) for one in server.world.user_ids()[offset:][:limit]],
    }


def expect_refusal(answer: Answer, status: int, *words: str, code: str | None = None) -> None:
    assert answer.status == status
    error = answer.json["error"]
    assert code in (None, error["code"])
    assert error["status"] == status
    assert error["guess"] is True
    for word in words:
        assert word in error["message"]


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer wrong",
        "{secret}",
        "Bearer {secret}x",
        "bearer {secret}",
    ],
)
def test_401_without_the_right_bearer(server, ask, authorization):
    given = authorization and authorization.format(secret=server.secret)
    answer = ask("/external/users", Authorization=given)
    expect_refusal(answer, 401, "Bearer", code="unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert server.secret.encode() not in answer.body


def send(server: MockServer, *headers: tuple[str, str], target: str = "/external/users") -> int:
    """The status for these headers, which may repeat."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest("GET", target)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status


def test_headers_may_repeat_but_the_secret_must_not(server):
    secret = ("authorization", f"Bearer {server.secret}")
    accepted = [("accept", "text/html"), ("accept", f"{MEDIA_TYPE.upper()};q=0.5")]
    assert send(server, secret, *accepted, target="/external/users?%6Cimit=%35&") == 200
    assert send(server, secret, secret, *accepted) == 401


def test_the_checks_have_an_order(ask):
    """Path, method, secret, Accept, arguments, look-up."""
    wrong = {"Authorization": "Bearer wrong", "Accept": "*/*"}
    assert ask("/nowhere?limit=0", "POST", **wrong).status == 404
    assert ask("/external/users/1?limit=0", "POST", **wrong).status == 405
    assert ask("/external/users/1?limit=0", **wrong).status == 401
    assert ask("/external/users/1?limit=0", Accept="*/*").status == 406
    assert ask("/external/users/1?limit=0").status == 422
    assert ask("/external/users/1").status == 404


def test_each_answer_has_its_own_request_id(ask):
    answers = [ask("/external/users/42"), ask("/external/users/1"), ask("/external/users/42")]
    assert len({one.headers["x-request-id"] for one in answers}) == 3


def test_requests_are_counted_by_route_and_by_status():
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
            "file": 0,
            "other": 1,
        }
        assert server.statuses() == {200: 4, 401: 1, 404: 3, 422: 1}
        ask.connection.close()


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "*/*",
        "application/vnd.other.v1+json",
        "application/vnd.example.v2+json",
    ],
)
def test_406_without_the_versioned_media_type(ask, accept):
    expect_refusal(ask("/external/users", Accept=accept), 406, MEDIA_TYPE, code="not_acceptable")


def connected(server: MockServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def status(server: MockServer, path: str, *hosts: str) -> int:
    """Of the answer to a GET that is right but for its Host headers."""
    lines = [f"GET {path} HTTP/1.1", *(f"Host: {host}" for host in hosts)]
    lines += [f"Authorization: Bearer {server.secret}", "Connection: close"]
    lines += [f"Accept: application/vnd.{server.vendor}.v1+json", "", ""]
    with connected(server) as connection, connection.makefile("rb") as answer:
        connection.sendall("\r\n".join(lines).encode())
        return int(answer.read().split(b" ", 2)[1])


@pytest.mark.parametrize(
    "path", ["/external/users", "/external/users/42", "/openapi.json", "/", "/__mock/"]
)
def test_a_website_does_not_reach_the_mock_by_a_name_of_its_own(server, path):
    before = len(server.unexpected)
    for hosts in (["evil.example"], [f"127.0.0.1.evil.example:{server.port}"], []):
        assert status(server, path, *hosts) == 403
    assert status(server, path, "127.0.0.1", "evil.example") == 403
    # It is no slip of the code under test.
    assert len(server.unexpected) == before
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", "[::1]"):
        assert status(server, path, host) != 403


def test_a_head_is_refused_before_it_is_large(server):
    with connected(server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: " + b"x" * 20_000)
        assert connection.recv(12) == b"HTTP/1.1 431"


def test_secrets_are_random_and_told_apart_from_real_ones(server):
    with MockServer(World(users=1)) as other, server.lane() as one, server.lane() as two:
        secrets = [server.secret, other.secret, one.secret, two.secret]
        assert len({*secrets}) == 4
        assert all(re.fullmatch("mock_.*[0-9a-f]{32}", secret) for secret in secrets)
        port = other.port
    with MockServer(World(users=1), port=port) as again:
        assert again.secret != secrets[1]
