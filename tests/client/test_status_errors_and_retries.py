"""Statuses and broken answers: what error each is, and what it carries.

What is retried is in test_mock_faults.py and src/core/retry.
"""

import gzip
import pickle
import re
import socket
from typing import Any

import pytest

from backread import (
    AuthenticationError,
    BackreadError,
    BadRequestError,
    ConnectError,
    DecodeError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    StatusError,
)
from helpers.api_rows import envelope, ids, user
from helpers.scripted_server import HANG_UP, Place, Request, answer

FINE = answer(200, user(42))
HALF = b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"id": 42, '


def failure(face: Any, server: Any, kind: type[Exception] = Exception, **options: Any) -> Any:
    """The error of getting user 42, which is of exactly this class."""
    client = face.client(server, **{"max_retries": 0, "timeout": 10, **options})
    with pytest.raises(kind) as caught:
        face.call(client.users.get, 42)
    assert type(caught.value) is kind
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (301, StatusError, "redirect"),
        (400, BadRequestError, "arguments"),
        (401, AuthenticationError, "BACKREAD_API_SECRET"),
        (403, PermissionDeniedError, "may not read"),
        (404, NotFoundError, "no such user"),
        (406, StatusError, "BACKREAD_VENDOR"),
        (408, StatusError, "body"),
        (422, BadRequestError, "arguments"),
        (429, RateLimitError, "rate_limit="),
        (500, ServerError, "later"),
        (599, ServerError, "later"),
    ],
)
def test_each_status_is_its_error_and_carries_the_answer(face, scripted, status, kind, advice):
    body = b'{"why": "\xff\x00 <b>"}'
    headers = {"X-Request-Id": "r-17", "X-Twice": "a\r\nx-twice: b", "Content-Encoding": "gzip"}
    error = failure(face, scripted(answer(status, gzip.compress(body), headers)), kind)
    assert error.status_code == status
    assert error.body == body
    assert error.headers["x-request-id"] == "r-17"
    assert error.headers["x-twice"] == "a, b"
    assert error.request_id == "r-17"
    assert [one.status for one in error.attempts] == [status]
    assert error.attempts[0].seconds_taken > 0
    message = str(error)
    for part in ("/external/users/42: ", str(status), "1 attempt", "r-17", advice):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (403, PermissionDeniedError, "see rate_limit"),
        (404, NotFoundError, "no such user"),
    ],
)
def test_a_web_page_may_be_of_something_in_front_of_the_service(face, scripted, status, kind, says):
    page = answer(status, b"<html><title>No</title>", {"content-type": "Text/HTML; charset=utf-8"})
    error = str(failure(face, scripted(page), kind))
    assert says in error
    assert re.search("web page.* something in front", error)
    # PHP names this type for whatever a program does not.
    text = answer(status, b'{"error": "<html>"}', {"content-type": "text/html"})
    assert "web page" not in str(failure(face, scripted(text), kind))


def test_a_list_of_users_that_is_not_there_is_a_wrong_address(face, scripted):
    client = face.client(scripted(answer(404, b'{"detail": "no route"}')))
    with pytest.raises(NotFoundError, match="no list of users there; check base_url") as caught:
        face.collect(client.users.list())
    assert "no such user" not in str(caught.value)
    # Past the end, some services say the same.
    with pytest.raises(NotFoundError, match="no such user"):
        face.call(client.users.page, 99)
    face.close(client)


def test_error_url_is_the_whole_url_of_the_request_that_failed(each_face, backread_server):
    for path, said in [("", "there is no user 1"), ("/api", "unknown path")]:
        base_url = f"{backread_server.url}{path}"
        client = each_face.kind(base_url, backread_server.secret, backread_server.vendor)
        with pytest.raises(NotFoundError, match=f'it says "{said}') as caught:
            each_face.call(client.users.get, 1)
        url = f"{base_url}/external/users/1"
        assert str(caught.value).startswith(f"GET {url}: the service answered 404")
        assert caught.value.url == url == pickle.loads(pickle.dumps(caught.value)).url
        each_face.close(client)


def test_error_says_why_the_service_cannot_be_reached(each_face, no_settings):
    nowhere = Place()
    nowhere.url = "https://chat.invalid/api"
    error = failure(each_face, nowhere, ConnectError)
    assert error.url == "https://chat.invalid/api/external/users/42"
    assert str(error).startswith(f"GET {error.url}: no answer")
    # Bound and not listening: no other process can take the port meanwhile.
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        nowhere.url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        error = failure(each_face, nowhere, ConnectError, max_retries=2)
    assert len(error.attempts) == 3
    assert "refused" in str(error).lower()


def test_error_url_of_a_walk_that_is_not_proved(face, scripted):
    server = scripted(answer(200, envelope([user(1)], total=2)))
    for listing, path in [
        (face.client(server).users.list(strict=True), "/external/users"),
        (face.client(server).messages.list(1, strict=True), "/external/users/1/messages"),
    ]:
        with pytest.raises(BackreadError) as caught:
            face.collect(listing)
        assert caught.value.url is not None
        assert caught.value.url.partition("?")[0] == server.url + path


def test_an_error_whose_body_breaks_off_is_still_that_status(face, scripted):
    server = scripted(b"HTTP/1.1 404 Not Found\r\ncontent-length: 500\r\n\r\nno such")
    error = failure(face, server, NotFoundError)
    assert (error.body, error.request_id) == (b"no such", None)


def test_the_last_failure_is_raised_and_carries_every_attempt(each_face, scripted):
    server = scripted(answer(503, b"first"), HANG_UP, HANG_UP, HALF, answer(500, b"last"))
    error = failure(each_face, server, ServerError, max_retries=3)
    assert (error.status_code, error.body) == (500, b"last")
    assert [one.status for one in error.attempts] == [503, None, None, None, 500]
    assert all(one.error for one in error.attempts)
    assert all(one.seconds_taken >= 0 for one in error.attempts)
    assert error.attempts[0].seconds_waited < 1
    assert "5 attempts" in str(error)
    assert len(server.requests) == 5


def test_the_attempts_of_a_walk_s_error_are_those_of_the_request_that_failed(face, scripted):
    page = answer(200, envelope([user(1)], total=200))
    server = scripted(answer(503), page, answer(503), answer(403))
    with pytest.raises(PermissionDeniedError) as caught:
        face.collect(face.client(server, max_retries=2, max_concurrency=1).users.list())
    assert len(server.requests) == 4
    assert [one.status for one in caught.value.attempts] == [503, 403]


def test_json_of_the_wrong_shape_is_not_tried_again(face, scripted):
    server = scripted(answer(200, {"id": "42"}), FINE)
    error = failure(face, server, DecodeError, max_retries=3)
    assert len(server.requests) == 1
    assert len(error.attempts) == 1


@pytest.mark.parametrize("status", [201, 206])
def test_any_success_with_a_user_in_it_is_a_success(face, scripted, status):
    server = scripted(answer(status, user(42), content_type="text/html"))
    assert face.get(server).id == 42


def test_an_error_in_the_middle_of_a_walk_comes_after_the_rows_before_it(each_face, scripted):
    first = envelope([user(one) for one in range(1, 100)], total=150)

    def service(request: Request) -> bytes:
        return answer(200, first) if request.query["offset"] == "0" else answer(403)

    listing = each_face.client(scripted(service)).users.list()
    assert ids(each_face.take(listing, 99)) == list(range(1, 100))
    with pytest.raises(PermissionDeniedError, match="offset=96"):
        each_face.take(listing, 100)
    report = listing.report
    assert (report.requests, report.pages, report.rows) == (2, 1, 99)
    assert report.certificate == "uncertified"
    assert report.reason
    assert report.ended_at is not None
