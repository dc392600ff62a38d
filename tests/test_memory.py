"""What a process remembers of a secret once its client is closed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# The authority of the tests, and a server's HTTP/2; the wheel is checked without them.
pytest.importorskip("trustme")
pytest.importorskip("h2")

from http2_server import Http2Server
from secure_server import Authority, SecureServer

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="a process cannot look at its own memory here"
)

CHILD = Path(__file__).with_name("memory_child.py")


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


def test_nothing_of_it_is_left_once_the_client_is_closed(each_face, authority):
    with Http2Server(authority) as server:
        counts = counted(each_face, server, authority)
    assert counts["before"] == 0
    assert counts["open"] > 0
    assert counts["after"] == 0


def test_over_http_1_the_head_of_a_request_is_all_that_is_left(each_face, authority):
    """In the buffer of each connection that wrote it, which is freed as it is."""
    with SecureServer(authority.context("localhost")) as server:
        counts = counted(each_face, server, authority)
    assert counts["before"] == 0
    assert counts["after"] <= server.connections < counts["open"]
