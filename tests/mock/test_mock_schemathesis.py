"""Schemathesis against the mock: every check, every phase, and it finds nothing."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from backread.testing import MockServer, World

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("schemathesis") is None, reason="schemathesis is not installed"),
]

PHASES = {"examples", "coverage", "fuzzing", "stateful"}
# Of each operation in each phase; the whole run takes 5 to 15 seconds.
EXAMPLES = 100


@pytest.fixture
def server() -> MockServer:
    return MockServer(World(seed=7, users=200, messages_per_user=(0, 120)))


def examine(server: MockServer, folder: Path) -> tuple[str, dict[str, Any]]:
    """What schemathesis prints of a server, and its report."""
    report = folder / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--no-color"),
            *("run", f"{server.url}/openapi.json", "--checks", "all"),
            *("--phases", ",".join(sorted(PHASES)), "--max-examples", str(EXAMPLES)),
            *("--generation-deterministic", "--continue-on-failure"),
            *("--header", f"Authorization: Bearer {server.secret}"),
            *("--header", f"Accept: application/vnd.{server.vendor}.v1+json"),
            *("--report", "json", "--report-json-path", str(report)),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", "NO_PROXY": "*"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=240,
    )
    assert report.exists(), done.stdout
    return done.stdout, json.loads(report.read_text(encoding="utf-8"))


def test_schemathesis_finds_nothing(server, tmp_path):
    with server:
        printed, report = examine(server, tmp_path)
    assert report["exit_code"] == 0, printed
    assert report["failures"] == report["errors"] == [], printed
    assert not any(report["warnings"].values()), printed
    assert report["complete"], printed

    # A run that asked little would find nothing too.
    ran = {name for name, told in report["phases"].items() if told["status"] == "success"}
    assert ran == PHASES
    assert report["operations"]["tested"] == report["operations"]["total"] == 4
    assert report["test_cases"]["generated"] > 4 * EXAMPLES
    for operation, phases in report["valid_rates"].items():
        assert phases["fuzzing"]["accepted"] > EXAMPLES // 4, operation
    # 400 is what is not HTTP gets, which is no answer of the interface.
    assert server.statuses().keys() - {400} == {200, 401, 404, 405, 422}
