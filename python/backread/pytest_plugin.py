"""pytest fixtures, on from the moment that backread is installed.

Nothing of backread is loaded until a fixture is used. A test takes what it needs by name::

    def test_report(backread_server, backread_client):
        assert report(backread_client).users == backread_server.world.total_users
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from backread._client import AsyncClient, Client
    from backread.testing import MockServer

__all__ = ["backread_async_client", "backread_client", "backread_server"]


@pytest.fixture(scope="session")
def backread_server() -> Iterator[MockServer]:
    """The faked service with 200 users of 0 to 120 messages each, one for the whole session.

    All tests share its world: a test that changes it should make its own
    `backread.testing.MockServer`.
    """
    from backread.testing import MockServer, World

    with MockServer(World(seed=7, users=200, messages_per_user=(0, 120))) as server:
        yield server


@pytest.fixture
def backread_client(backread_server: MockServer) -> Iterator[Client]:
    """A `Client` of ``backread_server``, closed after the test."""
    with backread_server.client() as client:
        yield client


@pytest.fixture
def backread_async_client(backread_server: MockServer) -> Iterator[AsyncClient]:
    """An `AsyncClient` of ``backread_server``, closed after the test.

    The fixture itself needs no event loop, so it works with any plugin for asynchronous tests,
    and with none: ``asyncio.run(main(backread_async_client))``.
    """
    client = backread_server.async_client()
    try:
        yield client
    finally:
        # aclose() would need an event loop, and there may be one that is not ours to touch.
        client._close()
