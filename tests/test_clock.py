"""The clock of a mock's lane: its clients wait in virtual time, and all that waits goes by it."""

import copy
import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from backread import Client, DeadlineExceededError, RateLimitError
from backread.testing import Clock
from canned import envelope, message, paged, user, users
from interpreter import check_silent, run
from scripted_server import Request, answer
from waiting import AT_ONCE

START = datetime(2026, 1, 1, tzinfo=UTC)
LIMITED = answer(429, headers={"Retry-After": "30"})


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.virtual()
    return clock


def on_clock(face: Any, server: Any, clock: Clock, **options: Any) -> Any:
    return face.kind._on_clock(clock, server.url, server.secret, server.vendor, **options)


def limited_first(times: int, service: Any) -> Any:
    """Answers the first requests for users with 429, and the rest as the service does."""
    left = [LIMITED] * times

    def respond(request: Request) -> bytes:
        refused = request.path == "/external/users" and left
        return left.pop() if refused else service(request)

    return respond


def test_a_walk_waits_in_virtual_time_and_says_so(face, scripted, clock):
    began = time.monotonic()
    server = scripted(limited_first(2, paged(users(250))))
    listing = on_clock(face, server, clock).users.list()
    assert len(face.collect(listing)) == 250
    assert clock.slept == [30, 30]
    assert clock.now == START + timedelta(minutes=1)
    assert (listing.report.started_at, listing.report.ended_at) == (START, clock.now)
    assert time.monotonic() - began < AT_ONCE


def test_what_holds_all_requests_is_one_wait(face, scripted, clock):
    messages = envelope([message(1)], key="messages")

    def service(request: Request) -> bytes:
        if request.path == "/external/users":
            return paged(users(40))(request)
        if request.path == "/external/users/7/messages" and not clock.slept:
            return LIMITED
        return answer(200, messages)

    listing = on_clock(face, scripted(service), clock).messages.all()
    assert len(face.collect(listing)) == 40
    assert clock.slept == [30]
    assert listing.report.ended_at - listing.report.started_at == timedelta(seconds=30)


def test_a_limit_per_minute_that_names_no_wait_is_outlasted(face, scripted, clock):
    counted: dict[int, int] = {}
    refused = []

    def service(request: Request) -> bytes:
        minute = int((clock.now - START).total_seconds() + 20) // 60
        counted[minute] = counted.get(minute, 0) + 1
        if counted[minute] > 20:
            refused.append(clock.now)
            return answer(429, b"Too many requests")
        if request.path == "/external/users":
            return paged(users(150))(request)
        return answer(200, envelope([message(1)], key="messages"))

    listing = on_clock(face, scripted(service), clock).messages.all()
    assert len(face.collect(listing)) == 150
    assert listing.report.certificate == "linked"
    assert len(refused) < 100
    assert clock.now - START < timedelta(minutes=12)


def test_refusals_that_name_no_wait_end_after_a_minute(face, scripted, clock):
    server = scripted(lambda request: answer(429, b"Too many requests"))
    client = on_clock(face, server, clock)
    lasted = []
    for _ in range(2):
        began = clock.now
        with pytest.raises(RateLimitError) as caught:
            face.call(client.users.get, 42)
        assert len(caught.value.attempts) == 6
        lasted.append((clock.now - began).total_seconds())
    assert 60 < lasted[0] < 70
    assert lasted[1] < 10


def test_calls_that_are_refused_together_give_up_together(scripted, clock):
    server = scripted(lambda request: answer(429, b"Too many requests"))
    client = Client._on_clock(clock, server.url, server.secret, server.vendor)
    with ThreadPoolExecutor(16) as threads:
        calls = [threads.submit(client.users.get, number) for number in range(1, 17)]
        errors = [call.exception() for call in calls]
    assert {type(error) for error in errors} == {RateLimitError}
    assert clock.now - START < timedelta(minutes=3)


def test_a_wait_past_the_deadline_is_not_begun(face, scripted, clock):
    client = on_clock(face, scripted(LIMITED), clock, deadline=20)
    with pytest.raises(DeadlineExceededError) as caught:
        face.call(client.users.get, 42)
    assert caught.value.wait == 30
    assert clock.slept == []


def test_the_deadline_of_a_call_runs_in_virtual_time(face, scripted, clock):
    client = on_clock(face, scripted(lambda request: LIMITED), clock, deadline=70)
    with pytest.raises(DeadlineExceededError) as caught:
        face.call(client.users.get, 42)
    assert clock.slept == [30, 30]
    assert [one.seconds_waited for one in caught.value.attempts] == [0, 30, 30]


def test_a_date_to_retry_after_is_one_of_the_clock(face, scripted, clock):
    later = answer(503, headers={"Retry-After": "Thu, 01 Jan 2026 01:00:00 GMT"})
    client = on_clock(face, scripted(later, answer(200, user(42))), clock)
    assert face.call(client.users.get, 42).id == 42
    assert clock.slept == [3600]


def test_a_rate_limit_spaces_requests_in_virtual_time(face, scripted, clock):
    server = scripted(lambda request: answer(200, user(42)))
    client = on_clock(face, server, clock, rate_limit=0.1)
    for _ in range(5):
        face.call(client.users.get, 42)
    assert clock.now == START + timedelta(seconds=40)
    assert clock.slept == []


def test_copies_keep_the_clock_and_a_pickle_does_not(face, scripted, clock, monkeypatch):
    shortly = answer(503, headers={"Retry-After": "0.01"})
    server = scripted(*[shortly, answer(200, user(42))] * 3)
    monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
    client = on_clock(face, server, clock)
    for copied in (client.with_options(timeout=5), copy.copy(client)):
        face.call(copied.users.get, 42)
    assert clock.slept == [0.01, 0.01]
    face.call(pickle.loads(pickle.dumps(client)).users.get, 42)
    assert clock.slept == [0.01, 0.01]


def test_a_real_clock_records_and_waits(face, scripted):
    clock = Clock()
    shortly = answer(429, headers={"Retry-After": "0.2"})
    client = on_clock(face, scripted(shortly, answer(200, user(42))), clock)
    began = time.monotonic()
    face.call(client.users.get, 42)
    assert time.monotonic() - began >= 0.2
    assert clock.slept == [0.2]


def test_it_shows_the_machines_time_until_it_is_virtual_and_afterwards():
    clock = Clock()
    for _ in range(2):
        assert not clock.is_virtual
        assert abs(clock.now - datetime.now(UTC)) < timedelta(seconds=20)
        clock.virtual(datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
        assert clock.is_virtual
        assert clock.now == datetime(2020, 1, 1, tzinfo=UTC)
        assert repr(clock) == "Clock(virtual, now=2020-01-01 00:00:00+00:00)"
        clock.real()


def test_it_is_moved_by_hand(clock):
    clock.advance(1.5)
    clock.advance(timedelta(minutes=1))
    assert clock.now == START + timedelta(seconds=61.5)


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (-1, ValueError),
        (timedelta(seconds=-1), ValueError),
        (float("nan"), ValueError),
        (1e19, OverflowError),
        (float("inf"), OverflowError),
        ("60", TypeError),
    ],
)
def test_it_is_not_moved_by_what_makes_no_sense(clock, seconds, error):
    with pytest.raises(error):
        clock.advance(seconds)
    assert clock.now == START


def test_a_real_clock_is_not_moved():
    with pytest.raises(RuntimeError, match="make it virtual first"):
        Clock().advance(1)


@pytest.mark.parametrize("start", [datetime(2026, 1, 1), "2026-01-01"])  # noqa: DTZ001
def test_a_start_without_a_time_zone_is_refused(start):
    with pytest.raises(TypeError, match="time zone"):
        Clock().virtual(start)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_client_works_in_a_forked_child(backread_server):
    code = """
        import os
        from backread import Client
        from backread.testing import Clock
        clock = Clock()
        clock.virtual()
        here = [os.environ["BACKREAD_" + name] for name in ("BASE_URL", "API_SECRET", "VENDOR")]
        client = Client._on_clock(clock, *here)
        client.users.get(42)
        child = os.fork()
        if child == 0:
            os._exit(client.users.get(42).id + clock.is_virtual)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), clock.is_virtual)
    """
    # Python 3.12 and later warn of forks where there are threads; this test is about just that.
    done = run(code, backread_server, "-W", "ignore::DeprecationWarning")
    check_silent(done, "42 True")
