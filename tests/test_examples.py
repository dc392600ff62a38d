"""Each file of examples/ runs, against the mock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

pytest.importorskip("duckdb")
pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="the wheel check takes the tests along, not the examples"
)


def test_unanswered(backread_server: Any, tmp_path: Path) -> None:
    settings = {
        "BACKREAD_BASE_URL": backread_server.url,
        "BACKREAD_API_SECRET": backread_server.secret,
        "BACKREAD_VENDOR": backread_server.vendor,
    }
    done = subprocess.run(
        [sys.executable, EXAMPLES / "unanswered.py", tmp_path / "chats"],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **settings, "PYTHONUTF8": "1"},
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *waiting = done.stdout.splitlines()
    world = backread_server.world
    assert first.startswith(f"{world.total_users} users, {world.total_messages} messages, ")
    assert len(waiting) == 10
    assert waiting == sorted(waiting, key=lambda line: line[:16])


def test_every_example_is_run() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for example in EXAMPLES.glob("*.py"):
        assert f'"{example.name}"' in here
