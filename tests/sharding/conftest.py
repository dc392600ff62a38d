"""A service with a few pages of users and messages, and what landing needs."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from backread.testing import Lane, MockServer, World

NEEDED = ("duckdb", "pyarrow")

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["test_landing.py"]


@pytest.fixture
def lane(backread_server: MockServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lane]:
    """Its secret is in the environment, as a worker has it."""
    with backread_server.lane(world=World(seed=5, users=230, messages_per_user=(0, 130))) as lane:
        monkeypatch.setenv("BACKREAD_API_SECRET", lane.secret)
        yield lane
