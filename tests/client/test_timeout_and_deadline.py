"""What bounds a call: timeout, deadline, and size. Waits and pace are tested in src/core."""

import time
from typing import Any

import pytest

from backread import (
    DeadlineExceededError,
    RateLimitError,
    RequestTimeoutError,
    ResponseTooLargeError,
)
from helpers.api_rows import envelope, paged, user, users
from helpers.scripted_server import answer
from helpers.waiting import AT_ONCE

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


def test_the_deadline_is_over_the_pages_of_a_walk(each_face, scripted):
    def slow(request: Any) -> Any:
        time.sleep(0.05)
        return paged(users(500))(request)

    listing = each_face.client(scripted(slow), deadline=1).users.list(page_size=1)
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError, match="deadline="):
        each_face.collect(listing)
    assert time.monotonic() - began < AT_ONCE
    assert 1 < listing.report.rows < 50
    assert listing.report.certificate == "uncertified"


def test_the_deadline_is_over_the_lists_of_all_messages(face, scripted):
    def service(request: Any) -> Any:
        if request.path == "/external/users":
            return paged(users(3))(request)
        return server.stall()

    server = scripted(service)
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        face.collect(face.client(server, deadline=0.4).messages.all())
    assert time.monotonic() - began < AT_ONCE


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


def test_the_wait_stands_in_the_attempts(face, scripted):
    server = scripted(answer(429, b"", {"retry-after": "0.3"}), answer(404))
    error = face.failure(server, Exception, "404")
    assert [one.status for one in error.attempts] == [429, 404]
    assert 0.29 <= error.attempts[1].seconds_waited < 2


def test_on_rate_limit_raise_gives_the_wait_to_the_caller(face, scripted):
    server = scripted(answer(429, b"slow down", {"retry-after": "30"}), answer(429), FINE)
    error = failure(face, server, RateLimitError, on_rate_limit="raise")
    assert error.retry_after == 30
    assert error.body == b"slow down"
    assert "30" in str(error)
    assert len(server.requests) == 1
    assert failure(face, server, RateLimitError, on_rate_limit="raise").retry_after is None


def test_an_answer_that_is_too_large_is_refused(face, scripted):
    server = scripted(answer(200, user(42, name="n" * 5_000)), FINE)
    error = failure(face, server, ResponseTooLargeError, max_response_bytes=4_000, max_retries=3)
    assert "4000" in str(error)
    assert "max_response_bytes=" in str(error)
    assert len(server.requests) == 1


def test_an_answer_of_just_the_bound_is_taken(face, scripted):
    body = b'{"id": 42}'
    server = scripted(lambda request: answer(200, body))
    assert face.get(server, max_response_bytes=len(body)).id == 42
    failure(face, server, ResponseTooLargeError, max_response_bytes=len(body) - 1)


def test_a_page_of_a_walk_that_is_too_large_is_an_error_and_no_end(face, scripted):
    server = scripted(lambda request: answer(200, envelope([user(1), user(2, name="n" * 5_000)])))
    with pytest.raises(ResponseTooLargeError, match="/external/users") as caught:
        face.collect(face.client(server, max_response_bytes=2_000).users.list())
    assert len(caught.value.attempts) == len(server.requests) == 8


def test_the_headers_of_a_rate_limit_delay_no_other_failure(face, scripted):
    server = scripted(answer(500, b"", {"x-ratelimit-reset": "3600"}), FINE)
    assert face.get(server, deadline=20).id == 42


@pytest.mark.parametrize("status", [408, 500, 502, 504])
def test_every_status_that_is_retried_may_ask_for_a_wait(face, scripted, status):
    server = scripted(answer(status, b"", {"retry-after": "3600"}))
    error = failure(face, server, DeadlineExceededError, deadline=AGES)
    assert error.wait == 3600
