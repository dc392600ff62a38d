"""Airflow for the tests in this folder: a separate home, a database, a service to read.

``airflow_home`` is an empty home with a migrated database, made once per session; the user's home
is not touched. ``service`` is a mock server; each test opens a lane with its own connection.
Airflow reads its settings when it is imported, so the environment is set before that.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backread.testing import Lane, MockServer, World

# What the tests in tests/ share.
sys.path.append(str(Path(__file__).resolve().parents[2]))


def settings(home: Path) -> dict[str, str]:
    """For a home; the code that starts components adds where the API server is."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "6",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        # Without a key the database would hold passwords in clear.
        "AIRFLOW__CORE__FERNET_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        # Three components write to one file: each waits for the others, and not only 5 seconds.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout=60",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        # A supervisor may notice only after this many seconds (5) that its task's process ended.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
    }


HOME = Path(tempfile.mkdtemp(prefix="backread-airflow-"))
for variable in [name for name in os.environ if name.startswith(("AIRFLOW_", "BACKREAD_"))]:
    del os.environ[variable]
os.environ.update(settings(HOME))

Connect = Callable[..., str]


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """The home, with a database."""
    (HOME / "dags").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "airflow", "db", "migrate"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return HOME


@pytest.fixture(scope="session")
def service() -> Iterator[MockServer]:
    """A service of 60 users."""
    with MockServer(World(seed=7, users=60, messages_per_user=(0, 30))) as running:
        yield running


@pytest.fixture
def lane(service: MockServer) -> Iterator[Lane]:
    """A lane of the service, for this test alone."""
    with service.lane() as opened:
        yield opened


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Makes the connection ``backread_default``, or another, of a lane; gives its id."""

    def connect(lane: Lane, conn_id: str = "backread_default", **extra: object) -> str:
        connection = {
            "conn_type": "backread",
            "host": lane.url,
            "password": lane.secret,
            "extra": {"vendor": lane.vendor, **extra},
        }
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
        return conn_id

    return connect


@pytest.fixture
def run(airflow_home: Path) -> Callable[[str, str], Any]:
    """Runs a DAG with this name and body in this process."""
    # Imports Airflow, which then reads its settings.
    from dag_files import run_dag

    return lambda name, body: run_dag(airflow_home, name, body)
