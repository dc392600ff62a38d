"""A sync that is killed with -9 thirty times, over a world that keeps changing in between."""

import subprocess
import sys

import pytest

from documents import IN_CHECKOUT, ROOT

pytest.importorskip("duckdb")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IN_CHECKOUT, reason="the script is in the checkout only"),
]

SECONDS = 560


def test_end_is_a_fresh_sync_s_and_little_is_asked_twice():
    script = ROOT / "benches" / "mirror_kills.py"
    done = subprocess.run(
        [sys.executable, str(script), "--kills", "30", "--most", "1.2"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills 30," in done.stdout
    assert "holds what a fresh mirror holds: yes" in done.stdout
