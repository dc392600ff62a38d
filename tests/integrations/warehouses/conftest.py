"""A warehouse for the tests in this folder: Debian's PostgreSQL, on a Unix socket."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# What the tests in tests/ share, and how services are started.
sys.path += [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parents[1] / "services")]


@pytest.fixture(scope="session")
def database() -> Iterator[Path]:
    """PostgreSQL, by the folder of its socket."""
    from postgres import postgresql

    with postgresql() as running:
        yield running
