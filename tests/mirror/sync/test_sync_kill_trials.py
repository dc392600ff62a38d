"""Syncs of a mirror that are killed with -9 again and again."""

import subprocess
import sys

import pytest

from helpers.doc_pages import IN_CHECKOUT, ROOT

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not IN_CHECKOUT, reason="the scripts are in the checkout only"),
]

SECONDS = 560


def printed(script: str, *arguments: str) -> str:
    """What a script of benches/ prints, which must end with 0."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "benches" / script), *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_sync_after_30_kills_equals_a_fresh_sync():
    said = printed("mirror_kills.py", "--kills", "30", "--most", "1.2")
    assert "kills 30," in said
    assert "holds what a fresh mirror holds: yes" in said
