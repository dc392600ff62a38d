"""The clock of a mock's lane: its clients wait in virtual time, and all that waits goes by it."""

import copy
import pickle
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from backread.testing import Clock
from helpers.api_rows import user
from helpers.scripted_server import answer

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.virtual()
    return clock


def on_clock(face: Any, server: Any, clock: Clock, **options: Any) -> Any:
    return face.kind._on_clock(clock, server.url, server.secret, server.vendor, **options)


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


def test_clock_shows_the_machines_time_unless_virtual():
    clock = Clock()
    for _ in range(2):
        assert not clock.is_virtual
        assert abs(clock.now - datetime.now(UTC)) < timedelta(seconds=20)
        clock.virtual(datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
        assert clock.is_virtual
        assert clock.now == datetime(2020, 1, 1, tzinfo=UTC)
        assert repr(clock) == "Clock(virtual, now=2020-01-01 00:00:00+00:00)"
        clock.real()


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (-1, ValueError),
        (float("inf"), OverflowError),
        ("60", TypeError),
    ],
)
def test_virtual_clock_advances_by_hand_and_refuses_nonsense(clock, seconds, error):
    clock.advance(1.5)
    clock.advance(timedelta(minutes=1))
    with pytest.raises(error):
        clock.advance(seconds)
    assert clock.now == START + timedelta(seconds=61.5)


@pytest.mark.parametrize("start", [datetime(2026, 1, 1), "2026-01-01"])  # noqa: DTZ001
def test_a_start_without_a_time_zone_is_refused(start):
    with pytest.raises(TypeError, match="time zone"):
        Clock().virtual(start)
