"""Connections: kept and used again, across clients of one pool; gone stale."""

from __future__ import annotations

import gc
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from backread import BackreadError, Client
from canned import user


class Service(http.server.ThreadingHTTPServer):
    """Answers every GET with user 42, on connections that it keeps unless told otherwise."""

    daemon_threads = True
    secret, vendor = "secret-of-the-service", "example"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections = 0
        self.ended = 0
        self.changed = threading.Condition()
        self.keeps = True
        self.url = f"http://127.0.0.1:{self.server_port}"

    def get_request(self) -> Any:
        accepted = super().get_request()
        self.connections += 1
        return accepted

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.changed:
            self.ended += 1
            self.changed.notify_all()

    def check_all_end(self) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.ended == self.connections, 10)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        body = json.dumps(user(42)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        # In one piece, or the second would wait for the first to be acknowledged.
        self._headers_buffer += [b"\r\n", body]
        self.flush_headers()
        # Without the header that would announce it.
        self.close_connection = not self.server.keeps

    def log_message(self, *arguments: Any) -> None:
        pass


def running(service: Service) -> Iterator[Service]:
    thread = threading.Thread(target=service.serve_forever, args=(0.01,))
    thread.start()
    yield service
    service.shutdown()
    thread.join()
    service.server_close()


@pytest.fixture
def service() -> Iterator[Service]:
    yield from running(Service())


def test_connections_are_used_again(face: Any, service: Service) -> None:
    client = face.client(service)
    for _ in range(20):
        assert face.call(client.users.get, 42).id == 42
        assert face.call(client.with_options(timeout=5).users.get, 42).id == 42
    # Rarely one is not back in the pool yet when the next call looks for it.
    assert service.connections < 10


def test_a_connection_that_went_stale_is_no_failure(face: Any, service: Service) -> None:
    service.keeps = False
    client = face.client(service)
    for _ in range(5):
        assert face.call(client.users.get, 42).id == 42
    assert service.connections >= 5


def test_a_connection_that_the_service_ended_between_two_calls_costs_no_attempt(
    service: Service,
) -> None:
    """Nobody looks after it between two calls that wait."""
    service.keeps = False
    with Client(service.url, service.secret, service.vendor, max_retries=0) as client:
        for _ in range(20):
            assert client.users.get(42).id == 42
            service.check_all_end()
    assert service.connections == 20


@pytest.mark.parametrize("end", ["close", "forget"])
def test_no_connection_outlives_its_client(service: Service, end: str) -> None:
    client = Client(service.url, service.secret, service.vendor, max_retries=0)
    assert client.users.get(42).id == 42
    if end == "close":
        client.close()
        with pytest.raises(BackreadError, match="closed"):
            client.users.get(42)
    else:
        del client
        gc.collect()
    service.check_all_end()
    assert service.connections == 1
