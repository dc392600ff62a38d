"""Reads through nginx and HAProxy: limits, outages, closed connections, a refused tunnel."""

from pathlib import Path
from typing import Any

import pytest
import scenarios

from backread import DeadlineExceededError

USERS = 400
IN_FLIGHT = 16
LONGEST_PAUSE = 5.0


@pytest.mark.parametrize(
    ("proxy", "seconds"),
    [
        pytest.param(scenarios.behind_haproxy, 2.0, id="haproxy-2"),
        pytest.param(scenarios.behind_haproxy, 10.0, id="haproxy-10", marks=pytest.mark.long),
        pytest.param(scenarios.behind_nginx, 2.0, id="nginx-2"),
    ],
)
def test_a_read_waits_for_the_end_of_an_outage(proxy, seconds, folder):
    outage = scenarios.outage(folder, proxy, seconds)
    assert outage.read.error is None
    assert len(outage.read.held) == USERS * 3
    # Those in flight as it began, and the probes.
    assert outage.sent <= 4 * IN_FLIGHT + 10
    assert outage.resumed is not None
    assert outage.resumed < 3 * LONGEST_PAUSE
    known: Any = outage.read.report
    assert known.outage_seconds == pytest.approx(outage.lasted + outage.resumed, abs=3)
    assert any("outage" in text for text in outage.read.log)


def test_the_deadline_ends_the_wait(folder):
    outage = scenarios.outage(folder, scenarios.behind_haproxy, 20.0, deadline=2.0)
    assert isinstance(outage.read.error, DeadlineExceededError)
    assert outage.read.seconds < 15


SECONDS = 3.0


def limited(folder: Path, rate: int, status: int, **options: Any) -> scenarios.Paced:
    """A read through a limit, a second one if it fails: six 503s in a row may come by chance."""
    for attempt in ("first", "second"):
        (folder / attempt).mkdir()
        paced = scenarios.limited(folder / attempt, rate, status, seconds=SECONDS, **options)
        if paced.read.error is None:
            break
    return paced


@pytest.mark.parametrize(
    ("rate", "status", "retry_after"),
    [
        (50, 429, True),
        (50, 503, False),
        *(
            pytest.param(rate, status, retry_after, marks=pytest.mark.long)
            for rate in (10, 500)
            for status, retry_after in ((429, False), (503, True))
        ),
    ],
)
def test_one_call_reads_everything_through_a_limit(rate, status, retry_after, folder):
    paced = limited(folder, rate, status, retry_after=retry_after)
    assert paced.read.error is None
    # At 10 a second the 16 requests that are in flight at first are most of what is sent.
    assert paced.rejected_share < (0.75 if rate == 10 else 0.5)
    # A second's wait is long at 500 a second, and each 503 costs one until it means "too fast".
    costly = retry_after and status == 503 and rate == 500
    assert paced.used > (0.01 if costly else 0.1 if retry_after else 0.2)


def test_an_unhealthy_upstream_does_not_end_the_read(folder):
    # Of 600 requests, each of which meets it six times in a row once in 729, one may well fail.
    paced = scenarios.unhealthy_pool(folder, 600, max_retries=15)
    assert paced.read.error is None
    assert paced.rejected_share == pytest.approx(1 / 3, abs=0.15)


REQUESTS = 1_000
CLOSED = "keepalive_requests 100;"


@pytest.mark.parametrize("tls", [True, False], ids=["http2", "http1"])
def test_a_connection_that_has_served_its_requests_costs_no_retry(tls, folder):
    closed = scenarios.closing(folder, REQUESTS, CLOSED, tls=tls, max_retries=0)
    assert closed.error is None
    assert closed.retries == 0
    assert closed.answered == REQUESTS
    # Those that were sent again are counted.
    assert REQUESTS <= closed.requests < 1.1 * REQUESTS


def test_a_connection_that_was_idle_costs_no_retry(folder):
    closed = scenarios.idle(folder, 500, 5, max_retries=0)
    assert closed.error is None
    assert closed.answered == closed.requests


def test_a_proxy_that_wants_another_password_is_asked_once(folder):
    refused = scenarios.refused_by_proxy(folder)
    assert refused.sent == 1
    assert refused.hinted, refused.error
