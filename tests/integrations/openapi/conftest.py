"""The OpenAPI document of a running mock, and the tools of other projects that take it."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backread.testing import MockServer, World

SECONDS = 240
"""What any one wait may take, on a machine that has much else to do."""

PRISM = "5.14.2"
PACKAGES = {"java": "default-jre-headless", "node": "nodejs", "npm": "npm"}
"""Debian's packages for the programs that pip does not bring."""

LOOPBACK = ["--host", "127.0.0.1", "--port", "0"]
LISTENING = re.compile(r"Prism is listening on (http://127\.0\.0\.1:\d+)")

StartPrism = Callable[..., str]


def program(name: str) -> str:
    """The path of a program; fails the test, with the package's name, where it is missing."""
    if (found := shutil.which(name)) is None:
        package = PACKAGES[name]
        pytest.fail(f"{name} is missing; on Debian, as root: apt-get install {package}", False)
    return found


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a program to its end; gives what it printed, and fails the test if it failed."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=cwd, **both, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def installed_prism() -> Path:
    """Prism's program, installed into this environment once, and kept with it."""
    folder = Path(sys.prefix) / f"prism-{PRISM}"
    program("node")
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=sys.prefix) as parent:
            made = Path(parent) / "prism"
            made.mkdir()
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(made)]
            run(program("npm"), "install", *options, f"@stoplight/prism-cli@{PRISM}", cwd=made)
            # Renamed when it is whole: an interrupted installation is not taken for one.
            made.rename(folder)
    return folder / "node_modules" / ".bin" / "prism"


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


@pytest.fixture
def start_prism(installed_prism: Path, document: Path, tmp_path: Path) -> Iterator[StartPrism]:
    """Starts Prism with a command (``mock``, or ``proxy`` to an upstream); gives its URL."""
    with contextlib.ExitStack() as running:

        def start(command: str, *arguments: str) -> str:
            log = tmp_path / "prism.log"
            process = subprocess.Popen(
                [installed_prism, command, document, *arguments, *LOOPBACK],
                stdout=running.enter_context(log.open("wb")),
                stderr=subprocess.STDOUT,
            )
            running.callback(process.wait, SECONDS)
            running.callback(process.terminate)
            give_up = time.monotonic() + SECONDS
            while (said := LISTENING.search(log.read_text(encoding="utf-8"))) is None:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                assert time.monotonic() < give_up, "Prism does not listen"
                time.sleep(0.05)
            return said.group(1)

        yield start
