"""The mock, asked by hand: as strict as the interface, its rows those of its world; how it ends."""

import contextlib
import http.client
import mmap
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from backread.testing import MockServer, World
from helpers.raw_requests import Caller
from helpers.waiting import PATIENCE

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


def test_a_page_of_users_is_the_interfaces(server, ask):
    answer = ask("/external/users?offset=50&limit=20")
    assert answer.status == 200
    assert answer.headers["x-request-id"] != ask("/external/users").headers["x-request-id"]
    assert answer.headers["content-type"].startswith("application/json")
    assert list(answer.json) == ["limit", "offset", "total", "users"]
    assert answer.json == {
        "limit": 20,
        "offset": 50,
        "total": 60,
        "users": [server.world.user(one) for one in server.world.user_ids()[50:]],
    }


@pytest.mark.parametrize("authorization", ["{secret}", "Bearer {secret}x", "bearer {secret}"])
def test_401_without_the_right_bearer(server, ask, authorization):
    given = authorization.format(secret=server.secret)
    answer = ask("/external/users", Authorization=given)
    assert answer.status == answer.json["error"]["status"] == 401
    assert answer.json["error"]["guess"] is True
    assert "Bearer" in answer.json["error"]["message"]
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
    for other in ("*/*", "application/vnd.other.v1+json", "application/vnd.example.v2+json"):
        assert ask("/external/users/1?limit=0", Accept=other).status == 406
    assert ask("/external/users/1?limit=0").status == 422
    assert ask("/external/users/1").status == 404


def status(server: MockServer, path: str, *hosts: str) -> int:
    """Of the answer to a GET that is right but for its Host headers."""
    lines = [f"GET {path} HTTP/1.1", *(f"Host: {host}" for host in hosts)]
    lines += [f"Authorization: Bearer {server.secret}", "Connection: close"]
    lines += [f"Accept: application/vnd.{server.vendor}.v1+json", "", ""]
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return int(connection.makefile("rb").read().split(b" ", 2)[1])


@pytest.mark.parametrize("path", ["/external/users/42", "/openapi.json", "/__mock/"])
def test_a_website_does_not_reach_the_mock_by_a_name_of_its_own(server, path):
    before = len(server.unexpected)
    for hosts in (["evil.example"], [f"127.0.0.1.evil.example:{server.port}"], []):
        assert status(server, path, *hosts) == 403
    assert status(server, path, "127.0.0.1", "evil.example") == 403
    # It is no slip of the code under test.
    assert len(server.unexpected) == before
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", "[::1]"):
        assert status(server, path, host) != 403


def test_secrets_are_random_and_told_apart_from_real_ones(server):
    with MockServer(World(users=1)) as other, server.lane() as one, server.lane() as two:
        secrets = [server.secret, other.secret, one.secret, two.secret]
        assert len({*secrets}) == 4
        assert all(re.fullmatch("mock_.*[0-9a-f]{32}", secret) for secret in secrets)
        port = other.port
    with MockServer(World(users=1), port=port) as again:
        assert again.secret != secrets[1]


# --- start and stop -------------------------------------------------------------------------------


def test_its_options_are_what_clients_must_bring():
    mine = {"secret": "mock_of_mine", "vendor": "acme.chat"}
    # A server on all addresses is reached on loopback.
    with MockServer(World(users=2), host="0.0.0.0", **mine) as server:
        assert (server.secret, server.vendor) == ("mock_of_mine", "acme.chat")
        assert server.url == f"http://127.0.0.1:{server.port}"
        with server.client(timeout=PATIENCE) as client:
            assert client.vendor == "acme.chat"
            assert len(client.users.page()) == 2


def test_a_taken_port_is_an_error_that_names_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            MockServer(port=port)


@pytest.mark.parametrize(
    "options",
    [
        {"host": "nowhere.example.com"},
        {"port": 70_000},
        {"secret": "a\nb"},
        {"vendor": "a b"},
    ],
    ids=repr,
)
def test_a_server_that_makes_no_sense_is_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        MockServer(**options)


def test_it_stops_at_once_with_connections_open_and_frees_its_port():
    # A loaded machine may hold one server up, but not one after another.
    for _ in range(3):
        server = MockServer(World(users=3))
        callers = [Caller(server) for _ in range(20)]
        for ask in callers:
            assert ask("/external/users").status == 200
        began = time.monotonic()
        server.stop()
        seconds = time.monotonic() - began
        server.stop()
        if seconds < 0.5:
            break
    assert seconds < 0.5
    with pytest.raises((http.client.HTTPException, OSError)):
        callers[0]("/external/users")
    with MockServer(port=server.port) as again:
        assert again.port == server.port
    for ask in callers:
        ask.connection.close()


def test_a_server_that_is_dropped_stops():
    port = MockServer(World(users=1)).port
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port))


def test_no_python_runs_while_it_answers(tmp_path):
    """Another process reads a page while this one holds the GIL, and marks a shared byte."""
    flag = tmp_path / "flag"
    flag.write_bytes(b"-")
    code = """
import pathlib, sys
from backread import Client
assert len(Client().users.page()) == 99
pathlib.Path(sys.argv[1]).open("r+b").write(b"+")
"""
    with (
        MockServer(World(users=99)) as server,
        flag.open("r+b") as file,
        mmap.mmap(file.fileno(), 1) as shared,
    ):
        settings = {
            "BACKREAD_BASE_URL": server.url,
            "BACKREAD_API_SECRET": server.secret,
            "BACKREAD_VENDOR": server.vendor,
        }
        interval = sys.getswitchinterval()
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(flag)], env={**os.environ, **settings}
        )
        # Nothing in this loop lets go of the GIL.
        sys.setswitchinterval(1_000)
        try:
            end = time.monotonic() + PATIENCE
            while shared[0] != ord("+") and time.monotonic() < end:
                pass
            answered = shared[:]
        finally:
            sys.setswitchinterval(interval)
        assert process.wait(PATIENCE) == 0
    assert answered == b"+"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_does_not_keep_the_port():
    server = MockServer(World(users=1))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        server.stop()
        with MockServer(World(users=1), port=server.port) as again, again.client() as client:
            assert client.users.page().total == 1
    finally:
        os.close(write)
        os.close(read)
        assert os.waitpid(child, 0)[1] == 0
