"""Runs one library in one case of `reliability.py`: a server, a child, and what both saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reliability_faults as faults
from reliability_certificates import Certificate
from reliability_servers import Behaviour, Request, Server

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "peers" / "reliability" / "situations.py"
LIBRARIES = ("backread", "wreq", "pyreqwest", "httpx", "aiohttp")
SECRET = "hush-4711-hush"


@dataclass(frozen=True)
class Seen:
    """What a child said, how it ended, and what the servers were asked."""

    outcome: dict[str, Any]
    exit_code: int
    stderr: str
    ended_at: float
    requests: list[Request]
    connections: int
    elsewhere: list[Request]
    """What the server of the other origin was asked."""
    interrupted_at: float | None = None

    @property
    def kind(self) -> str:
        """What kind of outcome it is."""
        return str(self.outcome["kind"])


@dataclass(frozen=True)
class Case:
    """A situation, and how what is seen in it is put into words."""

    key: str
    name: str
    behaviour: Behaviour
    words: Callable[[Seen], str]
    situation: str = "answer"
    timeout: float = 2.0
    limit: float = 10.0
    times: int = 1
    alone: bool = False
    """Whether nothing else may run meanwhile: for memory, and for fractions of a second."""
    certificate: Certificate | None = None
    leaves: bool = False
    """Whether the behaviour is a redirect to another origin."""
    into: str = ""
    """Where a line break and a header are put: ``secret``, ``agent`` or ``url``."""
    trusted: Certificate | None = None
    """What ``SSL_CERT_FILE`` names."""
    prepare: Callable[[], object] = lambda: None
    """Makes what would take the server long."""


def run(case: Case, library: str) -> Seen:
    """One library in one case, once."""
    with ExitStack() as stack:
        behaviour, elsewhere = case.behaviour, None
        if case.leaves:
            elsewhere = stack.enter_context(Server(faults.good))
            behaviour = faults.leave(elsewhere.url)
        tls = None if case.certificate is None else case.certificate.context()
        server = stack.enter_context(Server(behaviour, tls))
        child = stack.enter_context(started(case, library, server.url))
        interrupted_at = interrupt(child, server) if case.situation == "interrupt" else None
        try:
            stdout, stderr = child.communicate(timeout=case.limit + 10)
        except subprocess.TimeoutExpired:
            # Its own children too: they hold the pipes.
            os.killpg(child.pid, signal.SIGKILL)
            stdout, stderr = child.communicate()
        ended_at = time.monotonic()
        lines = [line for line in stdout.splitlines() if line.startswith('{"seconds"')]
        return Seen(
            outcome=json.loads(lines[0]) if lines else {"kind": "nothing"},
            exit_code=child.returncode,
            stderr=stderr,
            ended_at=ended_at,
            requests=list(server.requests),
            connections=server.connections,
            elsewhere=[] if elsewhere is None else list(elsewhere.requests),
            interrupted_at=interrupted_at,
        )


def started(case: Case, library: str, url: str) -> subprocess.Popen[str]:
    """The child."""
    injected = "\r\nX-Injected: yes"
    settings = {
        "base_url": f"{url}/chat{injected}" if case.into == "url" else url,
        "timeout": case.timeout,
        "deadline": case.timeout * 4,
        "into": case.into,
        "suffix": injected if case.into else "",
    }
    environment = {
        **{name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        "RELIABILITY_SETTINGS": json.dumps(settings),
        "RELIABILITY_SECRET": SECRET,
    }
    if case.trusted is not None:
        environment["SSL_CERT_FILE"] = str(case.trusted.file)
    python = sys.executable if library == "backread" else faults.PEERS
    command = [python, PROGRAM, library, case.situation, str(case.limit)]
    return subprocess.Popen(
        command,
        env=environment,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )


def interrupt(child: subprocess.Popen[str], server: Server) -> float | None:
    """Sends SIGINT in the middle of a call; gives when."""
    while not server.asked.wait(0.05):
        if child.poll() is not None:
            return None
    time.sleep(0.3)
    at = time.monotonic()
    child.send_signal(signal.SIGINT)
    return at
