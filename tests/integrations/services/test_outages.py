"""An upstream that goes down in the middle of a read, behind HAProxy (503) and nginx (502)."""

import time
from typing import Any

import pytest
import scenarios
from origin import SECRET, VENDOR
from processes import free_port

from backread import Client, ConnectError, DeadlineExceededError, ServerError

USERS = 400
IN_FLIGHT = 16
LONGEST_PAUSE = 5.0


@pytest.mark.parametrize(
    ("proxy", "seconds"),
    [
        pytest.param(scenarios.behind_haproxy, 0.5, id="haproxy-0.5"),
        pytest.param(scenarios.behind_haproxy, 2.0, id="haproxy-2"),
        pytest.param(scenarios.behind_haproxy, 10.0, id="haproxy-10"),
        pytest.param(scenarios.behind_nginx, 0.5, id="nginx-0.5"),
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
    # HAProxy answers 503, which may mean "too fast" until it has come for half a second.
    if seconds > 1 or proxy is scenarios.behind_nginx:
        assert known.outage_seconds == pytest.approx(outage.lasted + outage.resumed, abs=3)
        assert any("outage" in text for text in outage.read.log)


def test_without_patience_the_retries_of_a_request_end_the_read(folder):
    # A 502 slows nobody down, so that the retries are soon spent.
    outage = scenarios.outage(folder, scenarios.behind_nginx, 20.0, outage_patience=0)
    assert isinstance(outage.read.error, ServerError)


def test_without_retries_a_read_fails_at_once(folder):
    outage = scenarios.outage(folder, scenarios.behind_haproxy, 20.0, max_retries=0)
    # HAProxy closes a client's connection with the upstream's if that had served before.
    assert isinstance(outage.read.error, (ConnectError, ServerError))
    assert outage.lasted < 15


def test_the_deadline_ends_the_wait(folder):
    outage = scenarios.outage(folder, scenarios.behind_haproxy, 20.0, deadline=2.0)
    assert isinstance(outage.read.error, DeadlineExceededError)
    assert outage.read.seconds < 15


@pytest.mark.parametrize(
    "call",
    [lambda client: client.users.get(7), lambda client: client.users.list().to_list()],
    ids=["get", "list"],
)
def test_an_address_that_never_answered_is_not_an_outage(call):
    address = f"http://127.0.0.1:{free_port()}"
    started = time.monotonic()
    with (
        Client(address, SECRET, VENDOR, max_retries=1) as client,
        pytest.raises(ConnectError) as raised,
    ):
        call(client)
    assert len(raised.value.attempts) == 2
    assert time.monotonic() - started < 30
