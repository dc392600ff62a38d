"""What hands over columns, three of a kind: a listing, a page, a table of a mirror."""

from collections.abc import Iterator
from typing import Any

import pytest

from backread.mirror import Mirror
from backread.testing import MockServer, World
from helpers.mirrors import sync


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=5, users=120, messages_per_user=(1, 9))) as running:
        yield running


@pytest.fixture(scope="module")
def mirror(server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    pytest.importorskip("duckdb")
    made = Mirror(tmp_path_factory.mktemp("mirror") / "chats")
    sync(made, server)
    return made


@pytest.fixture(params=["listing", "page", "table"])
def source(request: pytest.FixtureRequest, server: MockServer) -> Iterator[Any]:
    with server.client() as client:
        if request.param == "listing":
            yield client.messages.all()
        elif request.param == "page":
            yield client.users.page(limit=99)
        else:
            yield request.getfixturevalue("mirror").table("messages")
