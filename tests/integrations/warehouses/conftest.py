"""A warehouse for the tests in this folder: PostgreSQL from Debian in a temporary folder.

The server listens on a Unix socket alone, as a user who is not root, without fsync.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from processes import running

from helpers.waiting import wait_for


def programs() -> Path:
    """The folder of PostgreSQL's programs, of the newest version installed."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    assert found, "PostgreSQL is missing; run: make test-warehouses"
    return found[-1]


@contextlib.contextmanager
def postgresql() -> Iterator[Path]:
    """The folder of the socket of a server that runs."""
    folder = Path(tempfile.mkdtemp(prefix="backread-pg-"))
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root; Debian's package brings this user.
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        options = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    data, socket, log = folder / "data", folder / ".s.PGSQL.5432", folder / "log"
    try:
        subprocess.run(
            [programs() / "initdb", "--no-sync", "-A", "trust", "-U", "backread", "-D", data],
            check=True,
            capture_output=True,
            cwd=folder,
            **options,
        )
        command = [programs() / "postgres", "-D", data, "-k", folder, "-h", "", "-F"]
        # SIGTERM would wait for connections to end.
        with running(command, log, socket.exists, signal.SIGINT, cwd=folder, **options):
            yield folder
    finally:
        shutil.rmtree(folder)


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
