"""Thousands of requests of a hostile mock with faults: each row right, and nothing that grows.

``make test-long`` does the same with a million.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

REQUESTS = 5_000
SOAK = Path(__file__).parents[1] / "soak.py"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what a process holds"),
]


def test_a_client_reads_a_hostile_service_for_long_and_holds_no_more_than_before():
    run = subprocess.run(
        [sys.executable, str(SOAK), str(REQUESTS)], capture_output=True, text=True, timeout=560
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.search(r"(\d+) requests, (\d+) rows, .* counted \d+, snapshot \d+", run.stdout)
    assert found is not None, run.stdout
    requests, rows = map(int, found.groups())
    assert requests >= REQUESTS
    assert rows > requests
