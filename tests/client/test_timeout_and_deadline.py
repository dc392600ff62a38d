"""What bounds a call: timeout and deadline. When it waits, and the pace, are tested in src/core."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from backread import (
    BackreadError,
    DeadlineExceededError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    RequestTimeoutError,
)
from helpers.api_rows import paged, user, users
from helpers.scripted_server import answer
from helpers.waiting import AT_ONCE, PATIENCE, wait_for

FINE = answer(200, user(42))
AGES = 30


def failure(face: Any, server: Any, kind: type[Exception], **options: Any) -> Any:
    return face.failure(server, kind, **{"timeout": AGES, **options})


def test_the_timeout_is_for_the_whole_attempt(each_face, scripted):
    server = scripted(lambda request: server.stall(FINE[:-10]))
    began = time.monotonic()
    error = failure(each_face, server, RequestTimeoutError, timeout=0.3, max_retries=0)
    assert 0.3 <= time.monotonic() - began < AT_ONCE
    assert isinstance(error, TimeoutError)
    assert [one.status for one in error.attempts] == [None]
    assert error.attempts[0].seconds_taken >= 0.29
    assert "timeout=" in str(error)
    assert "0.3" in str(error)


def test_the_deadline_ends_an_attempt_under_way(each_face, scripted):
    server = scripted(lambda request: server.stall())
    began = time.monotonic()
    error = failure(each_face, server, DeadlineExceededError, deadline=0.3)
    assert 0.3 <= time.monotonic() - began < AT_ONCE
    assert isinstance(error, TimeoutError)
    assert error.wait is None
    assert len(error.attempts) == 1
    assert "deadline=" in str(error)


def test_the_deadline_is_over_all_pages_and_lists(each_face, scripted):
    def slow(request: Any) -> Any:
        if request.path.endswith("/messages"):
            return server.stall()
        time.sleep(0.05)
        return paged(users(500))(request)

    server = scripted(slow)
    client = each_face.client(server, deadline=1)
    for listing in (client.users.list(page_size=1), client.messages.all()):
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError, match="deadline="):
            each_face.collect(listing)
        assert time.monotonic() - began < AT_ONCE
        assert listing.report.certificate == "uncertified"


def test_a_wait_past_the_deadline_fails_at_once_and_says_how_long_it_is(face, scripted):
    server = scripted(answer(429, b"slow down", {"retry-after": "3600"}))
    began = time.monotonic()
    error = failure(face, server, DeadlineExceededError, deadline=AGES)
    assert time.monotonic() - began < AT_ONCE
    assert 3600 - AT_ONCE <= error.wait <= 3600
    assert type(error.__cause__) is RateLimitError
    assert 3600 - AT_ONCE <= error.__cause__.retry_after <= 3600
    assert error.__cause__.body == b"slow down"
    assert [one.status for one in error.attempts] == [429]
    assert len(server.requests) == 1
    assert "deadline" in str(error)


def test_on_rate_limit_raise_gives_the_wait_to_the_caller(face, scripted):
    server = scripted(answer(429, b"slow down", {"retry-after": "30"}), answer(429), FINE)
    error = failure(face, server, RateLimitError, on_rate_limit="raise")
    assert error.retry_after == 30
    assert error.body == b"slow down"
    assert "30" in str(error)
    assert len(server.requests) == 1
    assert failure(face, server, RateLimitError, on_rate_limit="raise").retry_after is None


def test_the_headers_of_a_rate_limit_delay_no_other_failure(face, scripted):
    server = scripted(answer(500, b"", {"x-ratelimit-reset": "3600"}), FINE)
    assert face.get(server, deadline=20).id == 42


def test_a_call_that_is_not_retried_holds_no_other(face, scripted):
    server = scripted(answer(429, b"", {"Retry-After": "600"}), FINE)
    client = face.client(server, max_retries=0)
    with pytest.raises(RateLimitError):
        face.call(client.users.get, 42)
    assert face.call(client.users.get, 42).id == 42


@pytest.mark.parametrize("closed", ["itself", "its origin", "what was made of it"])
def test_closing_ends_a_wait(scripted, closed):
    server = scripted(lambda _: answer(429, b"", {"Retry-After": "600"}))
    origin = server.client()
    made = origin.with_options(max_concurrency=4)
    waiting = made if closed == "its origin" else origin
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(waiting.users.get, 42) for _ in range(3)]
        wait_for(lambda: server.requests)
        (made if closed == "what was made of it" else origin).close()
        for call in calls:
            with pytest.raises(BackreadError, match="closed"):
                call.result(PATIENCE)


@pytest.mark.parametrize("timeout", [2, 30])
def test_an_error_is_that_of_its_status_though_its_body_does_not_end(face, scripted, timeout):
    head = b"HTTP/1.1 404 X\r\nContent-Type: text/plain\r\nContent-Length: 50\r\n\r\n"
    server = scripted(lambda _: server.stall(head + b"not found"))
    began = time.monotonic()
    failure(face, server, NotFoundError, timeout=timeout)
    assert time.monotonic() - began < 25
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "options", "kept"),
    [
        ({"content-encoding": "gzip"}, {}, b"(the body cannot be decoded: "),
        ({}, {"max_response_bytes": 20}, b"blocked by the firew"),
    ],
    ids=["not gzip", "too large"],
)
def test_an_error_keeps_its_status_and_headers_whatever_its_body(
    face, scripted, headers, options, kept
):
    server = scripted(lambda _: answer(403, b"blocked by the firewall, rule 7", headers))
    with pytest.raises(PermissionDeniedError) as caught:
        face.call(face.client(server, **options).users.get, 42)
    assert caught.value.body.startswith(kept)
    assert caught.value.headers["connection"] == "close"
