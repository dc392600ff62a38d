"""Code in an interpreter of its own, where it may hang, be interrupted, or exit."""

import os
import subprocess
import sys
import textwrap
from typing import Any

from helpers.command_line import settings_of

SECONDS = 120
"""What any of it may take."""


def environment(server: Any) -> dict[str, str]:
    return {**os.environ, **settings_of(server), "PYTHONUNBUFFERED": "1"}


def run(code: str, server: Any, *options: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter, and fails if it takes longer than SECONDS."""
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env={**environment(server), **settings},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def check_silent(done: subprocess.CompletedProcess[str], said: str = "") -> None:
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == said
