"""Connections: kept and used again, across clients of one pool; gone stale."""

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backread import BackreadError, Client, ConnectError
from helpers.api_rows import ids
from helpers.keepalive_server import KeptServer


class Service(KeptServer):
    """Counts the connections that ended, too."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = 0
        self.changed = threading.Condition()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.changed:
            self.ended += 1
            self.changed.notify_all()

    def check_all_end(self) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.ended == self.connections, 10)


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


def test_connections_are_used_again(face, service):
    client = face.client(service)
    for _ in range(20):
        assert face.call(client.users.get, 42).id == 42
        assert face.call(client.with_options(timeout=5).users.get, 42).id == 42
        assert face.call(client.with_options(timeout=50).users.get, 42).id == 42
    # Rarely one is not back in the pool yet when the next call looks for it.
    assert service.connections < 10


def test_a_connection_that_the_service_ended_between_two_calls_costs_no_attempt(service):
    """Nobody looks after it between two calls that wait."""
    service.keeps = False
    with Client(service.url, service.secret, service.vendor, max_retries=0) as client:
        for _ in range(20):
            assert client.users.get(42).id == 42
            service.check_all_end()
    assert service.connections == 20


@pytest.mark.parametrize("end", ["close", "close a copy", "forget"])
def test_no_connection_outlives_its_client(service, end):
    client = Client(service.url, service.secret, service.vendor, max_retries=0)
    other = client.with_options(timeout=50)
    for each in (client, other):
        assert each.users.get(42).id == 42
    if end == "forget":
        del client, other, each
        gc.collect()
    else:
        (client if end == "close" else other).close()
        for each in (client, other):
            with pytest.raises(BackreadError, match="closed"):
                each.users.get(42)
    service.check_all_end()
    assert service.connections == 1


@pytest.fixture
def http2(authority: Any) -> Callable[..., Any]:
    """Makes a server of HTTP/2; the wheel is checked without its packages."""
    pytest.importorskip("h2")
    from helpers.http2_server import Http2Server

    return lambda **options: Http2Server(authority, **options)


def test_http_2_is_spoken_on_one_connection(face, authority, http2):
    with http2() as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        assert face.call(client.users.get, 42).id == 42
        assert ids(face.collect(client.users.list())) == [1, 2, 3, 4, 5]
        assert [one.id for one in face.call(client.users.page)] == [1, 2, 3, 4, 5]
        face.close(client)
    assert len(server.requests) == 3
    assert server.connections <= 2  # a listing may be read by other threads
    # The secret is kept out of the tables that compress headers (RFC 7541, 7).
    from hpack import NeverIndexedHeaderTuple

    for request in server.requests:
        (authorization,) = [one for one in request if one[0] == b"authorization"]
        assert authorization[1] == f"Bearer {server.secret}".encode()
        assert isinstance(authorization, NeverIndexedHeaderTuple)


def test_a_connection_that_ends_with_goaway_costs_no_retry_and_no_list(face, authority, http2):
    """nginx ends one so after ``keepalive_requests``; what it did not process is sent again."""
    with http2(answers=3) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        for _ in range(20):
            assert face.call(client.users.get, 42).id == 42
        # 20 answers in threes, and a request that found the end of each connection.
        assert (server.connections, len(server.requests)) == (7, 20)
        listing = client.messages.all(users=list(range(1, 33)))
        face.collect(listing)
        assert listing.report.unread_users == ()
        face.close(client)


def test_a_refused_stream_is_sent_again_at_most_16_times(face, authority, http2):
    with http2(refuses=16) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        assert face.call(client.users.get, 42).id == 42
        assert len(server.requests) == 17
        server.refuses = 17
        with pytest.raises(ConnectError) as caught:
            face.call(client.users.get, 42)
        face.close(client)
    assert [attempt.status for attempt in caught.value.attempts] == [None] * 17
    # The first two at once, the others with less than a tenth of a second between.
    waits = [attempt.seconds_waited for attempt in caught.value.attempts]
    assert 0 < sum(waits) < 14 * 0.1 + 0.5


def test_a_connection_that_falls_silent_is_replaced(face, authority, http2):
    """A failover, or a NAT that forgot it: nothing closes it, and all requests would share it."""
    with http2() as server:
        client = face.client(server, ca_bundle=authority.file, timeout=0.5)
        assert face.call(client.users.get, 42).id == 42
        server.deaf = server.connections
        assert face.call(client.users.get, 42).id == 42
        assert face.call(client.users.get, 42).id == 42
        face.close(client)
