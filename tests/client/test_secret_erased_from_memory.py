"""What a process remembers of a secret once its client is closed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# The authority of the tests, and a server's HTTP/2; the wheel is checked without them.
pytest.importorskip("trustme")
pytest.importorskip("h2")

from helpers import CHILDREN
from helpers.http2_server import Http2Server
from helpers.tls_server import Authority, SecureServer

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="a process cannot look at its own memory here"
)

CHILD = CHILDREN / "search_memory.py"


def counted(face: Any, server: Any, authority: Authority) -> dict[str, int]:
    """How often a process finds its secret: before, while a client is open, and after it."""
    done = subprocess.run(
        [sys.executable, str(CHILD), face.name, server.url, server.vendor, str(authority.file)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return {moment: int(count) for moment, count in map(str.split, done.stdout.splitlines())}


def test_closed_client_leaves_no_secret_in_memory(each_face, authority):
    with Http2Server(authority) as server:
        counts = counted(each_face, server, authority)
    assert counts["before"] == 0
    assert counts["open"] > 0
    assert counts["after"] == 0


def test_closed_client_leaves_the_secret_only_in_http1_request_buffers(each_face, authority):
    """In the buffer of each connection that wrote it, which is freed as it is."""
    with SecureServer(authority.context("localhost")) as server:
        counts = counted(each_face, server, authority)
    assert counts["before"] == 0
    assert counts["after"] <= server.connections < counts["open"]
