"""Connections that nginx closes between requests, and a proxy that refuses a tunnel."""

import pytest
import scenarios

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
