"""Airflow for the tests in this folder: a separate home, a database, a service to read.

``airflow_home`` is an empty home with a migrated database, made once per session; the user's home
is not touched. Airflow reads its settings when it is imported, so the environment is set before
that.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

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
