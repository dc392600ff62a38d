"""Connections: kept and used again, across clients of one pool; gone stale."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from backread import BackreadError, Client
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


@pytest.mark.parametrize("end", ["close", "forget"])
def test_no_connection_outlives_its_client(service, end):
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


@pytest.mark.parametrize("closes_first", [True, False], ids=["first", "other"])
def test_closing_a_client_closes_the_connections_of_those_made_from_it(service, closes_first):
    first = Client(service.url, service.secret, service.vendor, timeout=5, max_retries=0)
    other = first.with_options(timeout=50)
    for client in (first, other):
        assert client.users.get(42).id == 42
    (first if closes_first else other).close()
    service.check_all_end()
    assert service.connections == 1
