"""Services that are slow on purpose: `timeout` is for an attempt, `deadline` for a call."""

import itertools
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from backread import (
    RequestTimeoutError,
    ResponseTooLargeError,
    TransportError,
    TruncatedBodyError,
)
from helpers.broken_responses import READS, head, sized
from helpers.scripted_server import Place, answer
from helpers.waiting import AT_ONCE

TIMEOUT = 0.3
PAUSE = 0.01


def slowly(*pieces: bytes, start: bytes = b"") -> Iterator[bytes]:
    """Sends the pieces one after the other, again and again."""
    yield start
    for piece in itertools.cycle(pieces):
        time.sleep(PAUSE)
        yield piece


def headers() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        time.sleep(PAUSE)
        yield f"x-{number}: a\r\n".encode()


CHUNKS = head("transfer-encoding: chunked")
GZIP_START = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"

ENDLESS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a status line": lambda: slowly(b" ", start=b"HTTP/1.1 200 O"),
    "a header": lambda: slowly(b"a", start=b"HTTP/1.1 200 OK\r\nx: "),
    "headers": headers,
    "100 Continue": lambda: slowly(b"HTTP/1.1 100 Continue\r\n\r\n" * 20),
    "103 Early Hints": lambda: slowly(b"HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n" * 20),
    "a body": lambda: slowly(b" ", start=head()),
    "a body of a length": lambda: slowly(b" ", start=head("content-length: 100000")),
    "chunks": lambda: slowly(b"1\r\n \r\n", start=CHUNKS),
    "a chunk's size": lambda: slowly(b"0", start=CHUNKS),
    "an extension of a chunk": lambda: slowly(b"a", start=CHUNKS + b"5;"),
    "trailers": lambda: slowly(b"x: a\r\n", start=CHUNKS + b"2\r\n{}\r\n0\r\n"),
    "a gzip that unpacks to nothing": lambda: slowly(
        b"\x00\x00\x00\xff\xff", start=head("content-encoding: gzip") + GZIP_START
    ),
    "a zstd that unpacks to nothing": lambda: slowly(
        b"\x50\x2a\x4d\x18\x00\x00\x00\x00", start=head("content-encoding: zstd")
    ),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_a_drip_without_an_end_is_a_timeout(face, scripted, what):
    """However often a few bytes come: the timeout is for all of them."""
    server = scripted(lambda request: ENDLESS[what]())
    began = time.monotonic()
    error = face.failure(server, RequestTimeoutError, timeout=TIMEOUT, max_retries=0)
    assert TIMEOUT <= time.monotonic() - began < AT_ONCE
    assert error.attempts[0].seconds_taken < AT_ONCE


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses")
def test_the_timeout_covers_the_connecting(face):
    """A service whose queue of connections is full takes no more, and says nothing."""

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        full = Place()
        full.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        began = time.monotonic()
        face.failure(full, RequestTimeoutError, timeout=TIMEOUT, max_retries=0)
        assert TIMEOUT <= time.monotonic() - began < AT_ONCE
        for one in waiting:
            one.close()


def test_the_timeout_covers_the_greetings_of_tls(face, scripted):
    """The server waits for a request in plain text, and the client for the server's hello."""
    server = scripted()
    server.url = server.url.replace("http://127.0.0.1", "https://localhost")
    began = time.monotonic()
    face.failure(server, RequestTimeoutError, timeout=TIMEOUT, max_retries=0)
    assert TIMEOUT <= time.monotonic() - began < AT_ONCE


def test_the_timeout_is_over_all_redirects_of_an_attempt(face, scripted):
    def service(request: Any) -> bytes:
        time.sleep(0.12)
        return answer(302, b"", {"location": f"/hop/{len(server.requests)}"})

    server = scripted(service)
    began = time.monotonic()
    face.failure(server, RequestTimeoutError, timeout=TIMEOUT, max_retries=0)
    assert TIMEOUT <= time.monotonic() - began < AT_ONCE
    assert len(server.requests) < 5


def test_a_redirect_may_bring_an_endless_body_which_nobody_reads(face, scripted):
    def service(request: Any) -> Any:
        if request.path == "/there":
            return sized(b'{"id": 42}')
        return slowly(b" " * 1_000, start=b"HTTP/1.1 302 Found\r\nlocation: /there\r\n\r\n")

    assert face.get(scripted(service), timeout=5, max_retries=0).id == 42


HUGE: dict[str, tuple[Callable[[], Iterator[bytes]], type[Exception]]] = {
    "a status line": (lambda: quickly(b"a", b"HTTP/1.1 200 "), TransportError),
    "a header": (lambda: quickly(b"a", b"HTTP/1.1 200 OK\r\nx: "), TransportError),
    "headers": (lambda: quickly(b"x: a\r\n", b"HTTP/1.1 200 OK\r\n"), TransportError),
    "chunks": (lambda: quickly(b"1\r\n \r\n", CHUNKS), ResponseTooLargeError),
    "an extension of a chunk": (lambda: quickly(b"a", CHUNKS + b"1;"), TruncatedBodyError),
    "trailers": (lambda: quickly(b"x: a\r\n", CHUNKS + b"2\r\n{}\r\n0\r\n"), TruncatedBodyError),
}


def quickly(piece: bytes, start: bytes) -> Iterator[bytes]:
    yield start
    while True:
        yield piece * 10_000


@pytest.mark.parametrize("what", HUGE)
def test_what_has_no_end_is_refused_before_the_timeout(face, scripted, what):
    make, kind = HUGE[what]
    server = scripted(lambda request: make())
    client = face.client(server, timeout=60, max_retries=0, max_response_bytes=100_000)
    for read in READS.values():
        # And no `RequestTimeoutError`, which would come later.
        with pytest.raises(kind) as caught:
            read(face, client)
        assert type(caught.value) is kind
