"""Services for the tests in this folder: Debian's nginx, HAProxy and PostgreSQL, on loopback.

``folder`` is where a test's proxies keep their files. ``database`` is PostgreSQL; each test makes a
table of its own. Tests fail where a program is missing; ``make test-services`` installs them, or
says how to.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import postgresql


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name is short: that of a Unix socket may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="backread-") as made:
        yield Path(made)


@pytest.fixture(scope="session")
def database() -> Iterator[Path]:
    """PostgreSQL, by the folder of its socket."""
    with postgresql() as running:
        yield running
