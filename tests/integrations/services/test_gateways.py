"""Reads through nginx and HAProxy: limits, outages, closed connections, a refused tunnel."""

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from proxies import Front, haproxy, nginx

from backread import BackreadError
from backread.testing import MockServer, World

IN_FLIGHT = 16
LONGEST_PAUSE = 5.0
BURST = 20
LATENCY = "any: latency(10)"


def serve(users: int, port: int = 0) -> MockServer:
    """A service of users with a message each. For mock secrets, outages are not waited out."""
    world = World(seed=7, users=users, messages_per_user=1)
    return MockServer(world, port=port, secret="secret-of-the-service", faults=LATENCY)


@pytest.fixture
def interrupt() -> Iterator[Callable[..., list[float]]]:
    """Stops a service after 100 requests, for some seconds; the times at which it did."""
    threads = []
    over = threading.Event()

    def start(server: MockServer, seconds: float) -> list[float]:
        times: list[float] = []

        def work() -> None:
            while server.calls().count < 100 and not over.wait(0.005):
                pass
            times.append(time.time())
            server.close()
            over.wait(seconds)
            with serve(server.world.total_users, server.port):
                times.append(time.time())
                over.wait()

        threads.append(threading.Thread(target=work))
        threads[0].start()
        return times

    yield start
    over.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("proxy", "seconds"),
    [
        pytest.param(haproxy, 2.0, id="haproxy-2"),
        pytest.param(haproxy, 10.0, id="haproxy-10", marks=pytest.mark.long),
        pytest.param(nginx, 2.0, id="nginx-2"),
    ],
)
def test_a_read_waits_for_the_end_of_an_outage(proxy, seconds, interrupt, tmp_path):
    server = serve(400)
    with proxy(tmp_path, [server.port]) as front, front.client(server) as client:
        times = interrupt(server, seconds)
        listing = client.messages.all()
        assert len({row.id for row in listing}) == 400
    down, up = times
    # Those in flight as it began, and the probes.
    failed = [one for one in front.answered() if one.status != 200]
    assert len(failed) <= 4 * IN_FLIGHT + 10
    resumed = min(one.at - up for one in front.answered() if one.status == 200 and one.at >= up)
    assert resumed < 3 * LONGEST_PAUSE
    assert listing.report.outage_seconds == pytest.approx(up - down + resumed, abs=3)


def read_through(front: Front, server: MockServer) -> None:
    """Reads every message, which must succeed; a second time if it fails: chance may do it."""
    for attempt in (1, 2):
        with front.client(server) as client:
            try:
                assert sum(1 for _ in client.messages.all()) == server.world.total_messages
                break
            except BackreadError:
                if attempt == 2:
                    raise


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
def test_one_call_reads_everything_through_a_limit(rate, status, retry_after, tmp_path):
    limit = f"limit_req zone=all burst={BURST} nodelay;"
    locations = f"location / {{ {limit} proxy_pass http://origin; }}"
    lines = ""
    if retry_after:
        lines = f"error_page {status} @too_fast;"
        locations += f"location @too_fast {{ add_header Retry-After 1 always; return {status}; }}"
    zone = f"limit_req_zone $binary_remote_addr zone=all:1m rate={rate}r/s;"
    zone += f"limit_req_status {status};"
    with (
        serve(BURST + 3 * rate) as server,
        nginx(tmp_path, [server.port], locations=locations, http=zone, server=lines) as front,
    ):
        read_through(front, server)
    answered, served = front.answered(), front.count(200)
    # At 10 a second the 16 requests that are in flight at first are most of what is sent.
    assert front.count(status) / len(answered) < (0.75 if rate == 10 else 0.5)
    used = served / (BURST + rate * (answered[-1].at - answered[0].at))
    # A second's wait is long at 500 a second, and each 503 costs one until it means "too fast".
    costly = retry_after and status == 503 and rate == 500
    assert used > (0.01 if costly else 0.1 if retry_after else 0.2)


@pytest.mark.parametrize("tls", [True, False], ids=["http2", "http1"])
def test_a_connection_that_has_served_its_requests_costs_no_retry(tls, tmp_path, caplog):
    caplog.set_level(logging.INFO, "backread")
    users = 1_000
    with (
        MockServer(World(seed=7, users=users, messages_per_user=1)) as server,
        nginx(tmp_path, [server.port], server="keepalive_requests 100;", tls=tls) as front,
        front.client(server, max_retries=0) as client,
    ):
        listing = client.messages.all(users=server.world.user_ids())
        assert sum(1 for _ in listing) == users
    assert not [record for record in caplog.records if getattr(record, "again_in", None)]
    assert front.count(200) == users
    # Those that were sent again are counted.
    assert users <= listing.report.requests < 1.1 * users
