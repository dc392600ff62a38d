"""What bounds a call: timeout, deadline, the waits that the service asks for, size and pace."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import Any

import pytest

from backread import (
    DeadlineExceededError,
    RateLimitError,
    RequestTimeoutError,
    ResponseTooLargeError,
    ServerError,
)
from backread.testing import World
from canned import envelope, paged, user, users
from scripted_server import HANG_UP, answer
from waiting import AT_ONCE, PATIENCE, wait_for

FINE = answer(200, user(42))
AGES = 30


def failure(face: Any, server: Any, kind: type[Exception], **options: Any) -> Any:
    return face.failure(server, kind, **{"timeout": AGES, **options})


def test_the_timeout_is_for_the_whole_attempt(face, scripted):
    server = scripted(lambda request: server.stall(FINE[:-10]))
    began = time.monotonic()
    error = failure(face, server, RequestTimeoutError, timeout=0.3, max_retries=0)
    assert 0.3 <= time.monotonic() - began < AT_ONCE
    assert isinstance(error, TimeoutError)
    assert [one.status for one in error.attempts] == [None]
    assert error.attempts[0].seconds_taken >= 0.29
    assert "timeout=" in str(error)
    assert "0.3" in str(error)


def test_a_timeout_is_tried_again(face, scripted):
    stalls = scripted(lambda request: FINE if len(stalls.requests) > 1 else stalls.stall())
    assert face.get(stalls, timeout=0.3, max_retries=1).id == 42
    assert len(stalls.requests) == 2


def test_the_deadline_ends_an_attempt_under_way(face, scripted):
    server = scripted(lambda request: server.stall())
    began = time.monotonic()
    error = failure(face, server, DeadlineExceededError, deadline=0.3)
    assert 0.3 <= time.monotonic() - began < AT_ONCE
    assert isinstance(error, TimeoutError)
    assert error.wait is None
    assert len(error.attempts) == 1
    assert "deadline=" in str(error)


@pytest.mark.parametrize("failing", [answer(503), HANG_UP, answer(200, "<html>")])
def test_the_deadline_is_over_all_attempts(face, scripted, failing):
    server = scripted(lambda request: failing)
    began = time.monotonic()
    error = failure(face, server, DeadlineExceededError, deadline=1, max_retries=10_000)
    assert time.monotonic() - began < AT_ONCE
    # The deadline may pass before the last attempt has sent its request.
    assert len(error.attempts) - len(server.requests) in (0, 1)
    assert len(error.attempts) > 1
    assert error.__cause__ is not None or error.wait is None


def test_the_deadline_is_over_the_pages_of_a_walk(face, scripted):
    def slow(request: Any) -> Any:
        time.sleep(0.05)
        return paged(users(500))(request)

    listing = face.client(scripted(slow), deadline=1).users.list(page_size=1)
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError, match="deadline="):
        face.collect(listing)
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


def test_the_deadline_runs_while_a_call_waits_for_its_turn(scripted):
    """One place, and another call has it: the deadline of the one that waits is kept."""

    go_on = threading.Event()

    def service(request: Any) -> bytes:
        go_on.wait(PATIENCE)
        return FINE

    server = scripted(service)
    with (
        server.client(max_concurrency=1, timeout=None) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        holder = pool.submit(client.users.get, 1)
        try:
            wait_for(lambda: server.requests)
            with pytest.raises(DeadlineExceededError):
                client.with_options(deadline=0.3).users.get(2)
            assert not holder.done()
        finally:
            go_on.set()
        assert holder.result(PATIENCE).id == 42
    assert len(server.requests) == 1


def in_an_hour() -> dict[str, dict[str, str]]:
    then = time.time() + 3600
    return {
        "seconds": {"retry-after": "3600"},
        "date": {"retry-after": formatdate(then, usegmt=True)},
        "reset delta": {"x-ratelimit-reset": "3600"},
        "reset epoch": {"x-ratelimit-reset": str(int(then))},
        "both": {"retry-after": "3600", "x-ratelimit-reset": "9000"},
        "two lines": {"ratelimit": '"minute";r=9;t=9\r\nratelimit: "day";r=0;t=3600'},
    }


@pytest.mark.parametrize("form", in_an_hour())
def test_a_wait_past_the_deadline_fails_at_once_and_says_how_long_it_is(face, scripted, form):
    server = scripted(answer(429, b"slow down", in_an_hour()[form]))
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


def test_a_503_may_ask_for_a_wait_too(face, scripted):
    server = scripted(answer(503, b"", {"retry-after": "3600"}))
    error = failure(face, server, DeadlineExceededError, deadline=AGES)
    assert error.wait == 3600
    assert type(error.__cause__) is ServerError


@pytest.mark.parametrize("status", [408, 500, 502, 504])
def test_every_status_that_is_retried_may_ask_for_a_wait(face, scripted, status):
    server = scripted(answer(status, b"", {"retry-after": "3600"}))
    error = failure(face, server, DeadlineExceededError, deadline=AGES)
    assert error.wait == 3600


def test_the_headers_of_a_rate_limit_delay_no_other_failure(face, scripted):
    server = scripted(answer(500, b"", {"x-ratelimit-reset": "3600"}), FINE)
    assert face.get(server, deadline=20).id == 42


@pytest.mark.slow
def test_the_wait_that_was_asked_for_is_kept(face, scripted):
    server = scripted(answer(429, b"", {"retry-after": "1"}), FINE)
    began = time.monotonic()
    assert face.get(server, deadline=20).id == 42
    assert time.monotonic() - began >= 1


def test_the_wait_stands_in_the_attempts(face, scripted):
    server = scripted(answer(429, b"", {"retry-after": "0.3"}), answer(404))
    error = face.failure(server, Exception, "404")
    assert [one.status for one in error.attempts] == [429, 404]
    assert 0.29 <= error.attempts[1].seconds_waited < 2


@pytest.mark.parametrize(
    "nonsense", ["soon", "-5", "", "1e9999", "nan", "99999999999999999999999", "0"]
)
def test_a_wait_that_makes_no_sense_breaks_nothing(face, scripted, nonsense):
    server = scripted(lambda request: answer(429, b"", {"retry-after": nonsense}))
    face.failure(server, (RateLimitError, DeadlineExceededError), max_retries=1, deadline=5)


def test_on_rate_limit_raise_gives_the_wait_to_the_caller(face, scripted):
    server = scripted(answer(429, b"slow down", {"retry-after": "30"}), answer(429), FINE)
    error = failure(face, server, RateLimitError, on_rate_limit="raise")
    assert error.retry_after == 30
    assert error.body == b"slow down"
    assert "30" in str(error)
    assert len(server.requests) == 1
    assert failure(face, server, RateLimitError, on_rate_limit="raise").retry_after is None


def test_on_rate_limit_raise_still_tries_other_failures_again(face, scripted):
    server = scripted(answer(503), FINE)
    assert face.get(server, on_rate_limit="raise").id == 42


def test_a_rate_limit_error_at_the_end_of_the_retries_has_its_wait(face, scripted):
    server = scripted(answer(429, b"", {"retry-after": "7"}))
    assert failure(face, server, RateLimitError, max_retries=0).retry_after == 7


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
    assert len(caught.value.attempts) == len(server.requests) == 10


def test_no_more_requests_are_under_way_than_allowed(face, scripted):
    lock, all_came = threading.Lock(), threading.Event()
    under_way = most = 0

    def service(request: Any) -> bytes:
        nonlocal under_way, most
        if request.path == "/external/users":
            return paged(users(12))(request)
        with lock:
            under_way += 1
            most = max(most, under_way)
            if most == 3:
                all_came.set()
        all_came.wait(AT_ONCE)
        time.sleep(0.03)
        with lock:
            under_way -= 1
        return answer(200, envelope([], key="messages"))

    client = face.client(scripted(service), max_concurrency=3)
    assert face.collect(client.messages.all()) == []
    assert most == 3


def test_the_rate_limit_spaces_requests(face, scripted):
    server = scripted(lambda request: FINE)
    client = face.client(server, rate_limit=20)
    began = time.monotonic()
    for _ in range(9):
        face.call(client.users.get, 42)
    assert 0.39 <= time.monotonic() - began < AT_ONCE


def test_the_rate_limit_is_over_all_lists(face, backread_server):
    with backread_server.lane(world=World(users=8, messages_per_user=(0, 9))) as lane:
        lane.clock.virtual()
        start = lane.clock.now
        face.collect(face.client(lane, rate_limit=20).messages.all())
        assert lane.calls("any").count == 9
        assert 0.4 <= (lane.clock.now - start).total_seconds() < 0.5


def test_a_wait_that_one_call_was_asked_for_holds_the_others_back(scripted):

    came: list[tuple[str, float]] = []
    limited = threading.Event()

    def service(request: Any) -> bytes:
        came.append((request.path, time.monotonic()))
        if not limited.is_set():
            limited.set()
            return answer(429, b"", {"Retry-After": "1"})
        return answer(200, {"id": int(request.path.rsplit("/", 1)[1])})

    server = scripted(service)
    # The one place is the first call's until its answer has been taken for all of them.
    client = server.client(max_concurrency=1)
    first = threading.Thread(target=client.users.get, args=(1,))
    first.start()
    limited.wait()
    others = [threading.Thread(target=client.users.get, args=(one,)) for one in (2, 3, 4)]
    for thread in others:
        thread.start()
    for thread in (first, *others):
        thread.join()
    client.close()
    asked = came[0][1]
    assert sorted(path for path, _ in came[1:]) == [f"/external/users/{one}" for one in range(1, 5)]
    assert all(when - asked >= 0.95 for _, when in came[1:])
