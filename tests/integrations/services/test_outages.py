"""An upstream that goes down in the middle of a read, behind HAProxy (503) and nginx (502)."""

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
