"""What is said of a request that no client should send: what was wanted, and what was nearest."""

import socket
import time
from datetime import UTC, datetime

import pytest

from backread.testing import JournalEntry, MockServer, UnexpectedRequestError


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
            "/external/users?limit=05",
            {},
            [
                "nearest: /external/users?limit=5\n",
                "from 1 to 99, as a plain integer without zeros",
            ],
        ),
        (
            "/external/users?offset=" + "9" * 5000,
            {},
            ["nearest: /external/users\n", "wanted: offset from 0 to 9223372036854775807, not '99"],
        ),
        (
            "/external/users/042",
            {},
            [
                "nearest: /external/users/42\n",
                "wanted: a plain integer, without zeros in front, below 2^63, not '042'",
            ],
        ),
        (
            f"/external/users/{2**64}/messages",
            {},
            ["nearest: /external/users/USER_ID/messages\n", f"below 2^63, not '{2**64}'"],
        ),
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


def unexpected_text(reason: str, path: str) -> str:
    entry = JournalEntry(
        number=1,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        method="GET",
        path=path,
        route="other",
        user=None,
        message=None,
        offset=None,
        limit=None,
        attempt=0,
        status=400,
        rows=None,
        faults=(),
        unexpected=reason,
    )
    return str(UnexpectedRequestError((entry,), "acme"))


def test_what_carries_no_secret_may_be_of_another_test():
    other = "may also come from what another test left running"
    assert other in unexpected_text("unauthorized", "/external/users")
    malformed = unexpected_text("malformed", "")
    assert "request 1: not HTTP -> 400 (malformed)" in malformed
    assert "wanted: an HTTP request with an absolute path" in malformed
    assert other in malformed


def test_what_has_no_path_and_what_is_no_http_is_said():
    with MockServer() as server:
        head = b"GET users HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
        for sent in (head, b"hello\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
                connection.sendall(sent)
                with connection.makefile("rb") as answer:
                    assert answer.read().startswith(b"HTTP/1.1 40")
        # What is no HTTP is noted once it is answered.
        deadline = time.monotonic() + 60
        while len(server.unexpected) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
        text = str(UnexpectedRequestError(server.unexpected, server.vendor))
    assert "request 1: GET (no path) -> 404 (unknown_path)" in text
    assert "request 2: not HTTP -> 400 (malformed)" in text
    assert text.count("wanted: an HTTP request with an absolute path") == 2


@pytest.mark.backread(unexpected="allow")
def test_many_are_shown_in_part(backread_mock, by_hand):
    caller = by_hand(backread_mock)
    for _ in range(13):
        caller("/external")
    text = str(UnexpectedRequestError(backread_mock.unexpected, "acme"))
    assert text.startswith("13 requests were sent")
    assert text.count("request ") == 10
    assert text.endswith("and 3 more")
