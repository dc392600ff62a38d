"""A warehouse for the tests in this folder: Debian's PostgreSQL, on a Unix socket."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

# What the tests in tests/ share, and how services are started.
sys.path += [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parents[1] / "services")]


@pytest.fixture(scope="session")
def database() -> Iterator[Path]:
    """PostgreSQL, by the folder of its socket."""
    from postgres import postgresql

    from waiting import wait_for

    with postgresql() as running:
        wait_for(lambda: _answers(running))
        yield running


def _answers(folder: Path) -> bool:
    """The server takes connections, which it may not do at once."""
    try:
        psycopg2.connect(host=str(folder), user="backread", dbname="postgres").close()
    except psycopg2.OperationalError:
        return False
    return True
