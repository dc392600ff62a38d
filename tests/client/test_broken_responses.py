"""Answers that are broken or have no end: by each read the same error, retried where that helps."""

import contextlib
import itertools
import json
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from backread import (
    ConnectError,
    DecodeError,
    RequestTimeoutError,
    ResponseTooLargeError,
    TransportError,
    TruncatedBodyError,
)
from helpers.api_rows import user
from helpers.broken_responses import (
    FINE,
    MALFORMED,
    NO_JSON,
    OVERSIZED,
    READS,
    TRUNCATED,
    UNHEARD,
    head,
    pack,
    serve,
    sized,
)
from helpers.scripted_server import RESET, Answer, Place, answer
from helpers.waiting import AT_ONCE


def check_refused(
    face: Any,
    scripted: Any,
    make: Callable[[bytes], Answer],
    kind: type[Exception],
    requests: int = 1,
) -> None:
    """Each read fails after this many requests, and succeeds if the next answer is whole."""
    for name, read in READS.items():
        server = scripted(serve(make))
        with pytest.raises(kind) as caught:
            read(face, face.client(server, max_retries=0, timeout=60))
        assert type(caught.value) is kind, name
        assert f"GET {server.url}{server.requests[0].target}: " in str(caught.value)
        assert len(caught.value.attempts) == len(server.requests) == requests
    for name, read in READS.items():
        # The second attempt meets a service that is well again.
        once = scripted(
            lambda request: serve(make if len(once.requests) == 1 else sized)(request)  # noqa: B023
        )
        assert read(face, face.client(once, max_retries=1, timeout=60)) == [42], name
        assert len(once.requests) == 2


@pytest.mark.parametrize("fault", TRUNCATED)
def test_a_body_that_is_not_whole_is_never_a_value(face, scripted, fault):
    check_refused(face, scripted, TRUNCATED[fault], TruncatedBodyError)


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "deflate"])
def test_a_packed_body_cut_at_any_byte_is_never_a_value(face, scripted, encoding):
    whole = pack(encoding, json.dumps(user(42)).encode())
    cuts = iter(range(len(whole)))
    server = scripted(
        lambda _: sized(whole[: next(cuts)], f"content-encoding: {encoding}", "connection: close")
    )
    client = face.client(server, max_retries=0)
    with pytest.raises(DecodeError):
        face.call(client.users.get, 42)
    for _ in range(1, len(whole)):
        with pytest.raises(TruncatedBodyError):
            face.call(client.users.get, 42)


@pytest.mark.parametrize("fault", UNHEARD)
def test_an_answer_without_a_head_is_no_answer(face, scripted, fault):
    # Its connection may have been idle for too long, so the request is sent again at once.
    check_refused(face, scripted, UNHEARD[fault], ConnectError, requests=2)
    once = scripted(
        lambda request: serve(UNHEARD[fault] if len(once.requests) == 1 else sized)(request)
    )
    assert READS["get"](face, face.client(once, max_retries=0)) == [42]


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_head_that_is_not_http_is_called_that(each_face, scripted, fault):
    check_refused(each_face, scripted, MALFORMED[fault], TransportError)
    error = each_face.failure(scripted(serve(MALFORMED[fault])), TransportError, max_retries=0)
    assert "the service answered with headers that are not HTTP: " in str(error)
    assert "no answer" not in str(error)


@pytest.mark.parametrize("fault", OVERSIZED)
def test_a_head_that_is_too_large_is_an_error(face, scripted, fault):
    check_refused(face, scripted, OVERSIZED[fault], TransportError)


@pytest.mark.parametrize("fault", NO_JSON)
def test_a_200_without_json_is_a_decode_error(face, scripted, fault):
    check_refused(face, scripted, NO_JSON[fault], DecodeError)


def test_a_reset_within_the_body_is_not_its_end(face, scripted):
    """Without a length, what came so far could be taken for all of it."""

    def of_a_length(body: bytes) -> Answer:
        return iter([sized(body)[:-20], RESET])

    def without_one(body: bytes) -> Answer:
        return iter([head() + body, RESET])

    check_refused(face, scripted, of_a_length, TruncatedBodyError)
    check_refused(face, scripted, without_one, TruncatedBodyError)


@pytest.mark.parametrize("oddity", FINE)
def test_an_odd_answer_that_is_all_there_is_a_value(face, scripted, oddity):
    for name, read in READS.items():
        server = scripted(serve(FINE[oddity]))
        assert read(face, face.client(server, max_retries=0, timeout=60)) == [42], name
        assert len(server.requests) == 1


class Forger(socketserver.StreamRequestHandler):
    """Keeps its connections, and sends the answer to a request that was not sent along."""

    def handle(self) -> None:
        while line := self.rfile.readline():
            while self.rfile.readline().strip():
                pass
            number = int(line.split()[1].rsplit(b"/", 1)[1])
            both = [sized(json.dumps({"id": one}).encode()) for one in (number, 666)]
            with contextlib.suppress(OSError):
                self.wfile.write(b"".join(both))


class ForgingServer(Place, socketserver.ThreadingTCPServer):
    daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def test_what_follows_an_answer_is_not_the_next_one(face):
    """Bytes past the end of a body must not be read as the answer to another request."""
    with ForgingServer(("127.0.0.1", 0), Forger) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        client = face.client(server, max_retries=3)
        for number in range(1, 20):
            assert face.call(client.users.get, number).id == number
        server.shutdown()
        thread.join()


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
    client = face.client(server, timeout=60, max_retries=0, max_response_bytes=20_000)
    for read in READS.values():
        # And no `RequestTimeoutError`, which would come later.
        with pytest.raises(kind) as caught:
            read(face, client)
        assert type(caught.value) is kind


def test_the_timeout_is_over_all_redirects_of_an_attempt(face, scripted):
    def service(request: Any) -> bytes:
        time.sleep(0.12)
        return answer(302, b"", {"location": f"/hop/{len(server.requests)}"})

    server = scripted(service)
    began = time.monotonic()
    face.failure(server, RequestTimeoutError, timeout=TIMEOUT, max_retries=0)
    assert TIMEOUT <= time.monotonic() - began < AT_ONCE
    assert len(server.requests) < 5
