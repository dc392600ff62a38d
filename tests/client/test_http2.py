"""HTTP/2, where server and client agree on it as TLS begins."""

import pytest

from backread import ConnectError
from helpers.api_rows import ids

# The authority of the tests, and the server's HTTP/2; the wheel is checked without them.
pytest.importorskip("trustme")
pytest.importorskip("h2")

from hpack import NeverIndexedHeaderTuple

from helpers.http2_server import Http2Server


def test_http_2_is_spoken_on_one_connection(face, authority):
    with Http2Server(authority) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        assert face.call(client.users.get, 42).id == 42
        assert ids(face.collect(client.users.list())) == [1, 2, 3, 4, 5]
        assert [one.id for one in face.call(client.users.page)] == [1, 2, 3, 4, 5]
        face.close(client)
    assert len(server.requests) == 3
    assert server.connections <= 2  # a listing may be read by other threads


def test_the_secret_is_kept_out_of_the_tables_that_compress_headers(face, authority):
    """A header in such a table can be guessed at by whoever shares the connection (RFC 7541, 7)."""
    with Http2Server(authority) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        for _ in range(3):
            assert face.call(client.users.get, 42).id == 42
        face.close(client)
    for request in server.requests:
        (authorization,) = [one for one in request if one[0] == b"authorization"]
        assert authorization[1] == f"Bearer {server.secret}".encode()
        assert isinstance(authorization, NeverIndexedHeaderTuple)


def test_a_connection_that_ends_with_goaway_costs_no_retry(face, authority):
    """nginx ends one so after ``keepalive_requests``; what it did not process is sent again."""
    with Http2Server(authority, answers=3) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        for _ in range(20):
            assert face.call(client.users.get, 42).id == 42
        face.close(client)
    # 20 answers in threes, and a request that found the end of each connection.
    assert server.connections == 7
    assert len(server.requests) == 20


def test_a_refused_stream_is_sent_again_at_most_16_times(face, authority):
    with Http2Server(authority, refuses=16) as server:
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


def test_connections_that_end_after_each_answer_cost_no_list(face, authority):
    """nginx with ``keepalive_requests 1``: most streams of each connection are not processed."""
    with Http2Server(authority, answers=1) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        listing = client.messages.all(users=list(range(1, 33)))
        face.collect(listing)
        assert listing.report.unread_users == ()
        face.close(client)


def test_a_connection_that_falls_silent_is_replaced(face, authority):
    """A failover, or a NAT that forgot it: nothing closes it, and all requests would share it."""
    with Http2Server(authority) as server:
        client = face.client(server, ca_bundle=authority.file, timeout=0.5)
        assert face.call(client.users.get, 42).id == 42
        server.deaf = server.connections
        assert face.call(client.users.get, 42).id == 42
        assert face.call(client.users.get, 42).id == 42
        face.close(client)
