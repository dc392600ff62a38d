"""The mock among strangers: websites in a browser of this machine."""

import re
import socket
from collections.abc import Iterator

import pytest

from backread.testing import MockServer, World


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=5)) as running:
        yield running


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
