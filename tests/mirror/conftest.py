"""A small service that a test may change, and what these tests need."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from backread.testing import MockServer, World

NEEDED = ("duckdb", "pyarrow", "rich", "typer", "xlsxwriter")

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["*"]


@pytest.fixture
def server() -> Iterator[MockServer]:
    """In place of the larger one that the tests of a module share."""
    with MockServer(World(seed=3, users=40, messages_per_user=(2, 20))) as running:
        yield running
