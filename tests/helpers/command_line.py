"""The command line, run in this process or in one of its own, and what it wrote."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from backread.testing import MockServer, World

SECONDS = 120
"""What any of it may take."""

COMMAND = [sys.executable, "-m", "backread"]

posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals and pipes")


@dataclass(frozen=True)
class Done:
    """How one command line ended."""

    code: int
    out: str
    error: str

    @property
    def line(self) -> str:
        """The one line on stderr."""
        assert self.error.count("\n") == 1, self.error
        assert self.error.startswith("backread: ")
        return self.error.strip()


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=11, users=120, messages_per_user=(1, 30))) as running:
        yield running


@pytest.fixture
def settings(server: MockServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in [name for name in os.environ if name.startswith("BACKREAD_")]:
        monkeypatch.delenv(name)
    values = settings_of(server)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


@pytest.fixture
def backread(
    settings: dict[str, str], server: MockServer, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Runs one command line in this process; the secret is never in what it writes."""

    from backread.cli.app import run

    def call(*arguments: object) -> Done:
        code = run([str(each) for each in arguments])
        written = capfd.readouterr()
        assert server.secret not in written.out + written.err
        assert "Traceback" not in written.err
        return Done(code, written.out, written.err)

    return call


def settings_of(server: Any) -> dict[str, str]:
    return {
        "BACKREAD_BASE_URL": server.url,
        "BACKREAD_API_SECRET": server.secret,
        "BACKREAD_VENDOR": server.vendor,
    }


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def doctor(backread: Callable[..., Done]) -> Callable[..., Done]:
    """Runs it; nothing but the report is written."""

    def run(*arguments: object) -> Done:
        done = backread("doctor", *arguments)
        assert done.error == ""
        return done

    return run


def findings(done: Done, topic: str) -> list[tuple[str, str]]:
    """The states and texts of one part of the report."""
    found = json.loads(done.out)
    assert found["exit_code"] == done.code
    return [
        (each["state"], f"{each['text']} -> {each['advice']}")
        for each in found["findings"]
        if each["topic"] == topic
    ]


def on_one_line(done: Done) -> str:
    return " ".join(done.out.split())
