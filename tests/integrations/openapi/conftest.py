"""The OpenAPI document of a running mock, and the tools of other projects that take it."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from backread.testing import MockServer, World

SECONDS = 240
"""What any one wait may take, on a machine that has much else to do."""


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a program to its end; gives what it printed, and fails the test if it failed."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=cwd, **both, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def service() -> Iterator[MockServer]:
    """A service with a vendor word other than the document's own."""
    with MockServer(World(seed=7, users=30, messages_per_user=(0, 60)), vendor="acme") as server:
        yield server


@pytest.fixture(scope="session")
def document(service: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document as the running mock serves it."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    with urllib.request.urlopen(f"{service.url}/openapi.json", timeout=SECONDS) as answer:
        path.write_text(json.dumps(json.load(answer)), encoding="utf-8")
    return path
