"""Sync, publish, migrate, export and forget, each killed with -9 at random moments."""

import subprocess
import sys

import pytest

from command_line import posix_only
from documents import IN_CHECKOUT, ROOT

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.slow,
    posix_only,
    pytest.mark.skipif(not IN_CHECKOUT, reason="the script is in the checkout only"),
]

SECONDS = 560


def test_each_leaves_the_state_before_or_after_and_can_be_repeated():
    script = ROOT / "benches" / "mirror_operation_kills.py"
    done = subprocess.run(
        [sys.executable, str(script), "--kills", "20", "--users", "100"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for operation in ("sync", "publish", "migrate", "export", "forget"):
        assert f"\n{operation}: 4 kills, " in done.stdout
    assert "violations in all: 0" in done.stdout
