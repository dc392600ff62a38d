"""A warehouse for the tests in this folder: Debian's PostgreSQL, on a Unix socket."""

from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from postgres import postgresql

from helpers.waiting import wait_for


@pytest.fixture(scope="session")
def database() -> Iterator[Path]:
    """PostgreSQL, by the folder of its socket."""
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
