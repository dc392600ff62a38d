"""Answers that are broken or have no end: by each read the same error, retried where that helps."""

import gzip
import itertools
import json
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow

from backread import (
    ConnectError,
    DecodeError,
    RequestTimeoutError,
    ResponseTooLargeError,
    TransportError,
    TruncatedBodyError,
)
from helpers.api_rows import envelope, user
from helpers.scripted_server import HANG_UP, RESET, Answer, Request, answer
from helpers.waiting import AT_ONCE

READS: dict[str, Callable[[Any, Any], list[int]]] = {
    "get": lambda face, client: [face.call(client.users.get, 42).id],
    "columns": lambda face, client: face.call(client.users.list().to_arrow)["id"].to_pylist(),
}
"""The ids of one request, and of a walk."""


def serve(make: Callable[[bytes], Answer]) -> Callable[[Request], Answer]:
    """A service whose answers are made of the body that was asked for: user 42, or a list of it."""

    def service(request: Request) -> Answer:
        one = request.path.endswith("42")
        return make(json.dumps(user(42) if one else envelope([user(42)])).encode())

    return service


def head(*lines: str, version: str = "HTTP/1.1") -> bytes:
    return "\r\n".join([f"{version} 200 OK", *lines, "", ""]).encode("latin-1")


def chunked(body: bytes, *lines: str, last: bytes = b"0\r\n\r\n") -> bytes:
    size = f"{len(body):x}\r\n".encode()
    return head("transfer-encoding: chunked", *lines) + size + body + b"\r\n" + last


def sized(body: bytes, *lines: str, length: Any = None) -> bytes:
    return head(f"content-length: {len(body) if length is None else length}", *lines) + body


def packed(encoding: str, spoil: Callable[[bytes], bytes] = bytes) -> Callable[[bytes], bytes]:
    """A whole answer whose body is packed, and then spoilt."""

    def make(body: bytes) -> bytes:
        return sized(spoil(pack(encoding, body)), f"content-encoding: {encoding}")

    return make


def pack(encoding: str, body: bytes) -> bytes:
    if encoding == "gzip":
        return gzip.compress(body)
    if encoding == "deflate":
        return zlib.compress(body)
    return pyarrow.compress(body, codec={"br": "brotli"}.get(encoding, encoding), asbytes=True)


TRUNCATED: dict[str, Callable[[bytes], Answer]] = {
    "Content-Length": lambda body: sized(body)[:-1],
    "no body at all": lambda body: head(f"content-length: {len(body)}"),
    "HTTP/1.0 with a length": lambda body: sized(body).replace(b"HTTP/1.1", b"HTTP/1.0")[:-1],
    "chunked, no last chunk": lambda body: chunked(body, last=b""),
    "chunked, half a last chunk": lambda body: chunked(body, last=b"0\r\n"),
    "chunked, within a chunk": lambda body: chunked(body, last=b"")[:-9],
    "chunked, no size": lambda body: head("transfer-encoding: chunked") + b"zz\r\n" + body,
    "gzip, wrong checksum": packed("gzip", lambda body: body[:-8] + b"\0\1\2\3" + body[-4:]),
    "gzip in chunks, cut": lambda body: chunked(gzip.compress(body)[:-1], "content-encoding: gzip"),
    "gzip, whole, no last chunk": lambda body: chunked(
        gzip.compress(body), "content-encoding: gzip", last=b""
    ),
}
"""Bodies that are not whole."""

UNHEARD: list[Answer] = [HANG_UP, RESET, head("content-type: text/plain")[:-9]]
"""Answers that end before their head does."""

MALFORMED: dict[str, Callable[[bytes], Answer]] = {
    "HTTP/0.9": lambda body: body,
    "two lengths": lambda body: sized(body, "content-length: 5"),
    "a negative length": lambda body: sized(body, length=-5),
    "a line that is no header": lambda body: sized(body, "no header"),
}
"""Answers whose head is not HTTP."""

NO_JSON: dict[str, Callable[[bytes], Answer]] = {
    "empty": lambda body: answer(200),
    "204": lambda body: answer(204),
    "packed nothing": lambda body: sized(b"", "content-encoding: gzip"),
    "HTML": lambda body: answer(200, "<!doctype html><title>Sign in</title>"),
    "half": lambda body: answer(200, body[:-9]),
    "twice": lambda body: answer(200, body + body),
    "NaN": lambda body: answer(200, body.replace(b'"id": 42', b'"id": 42, "x": NaN')),
    "x-gzip": lambda body: sized(gzip.compress(body), "content-encoding: x-gzip"),
}
"""A 200 whose body is no JSON."""

FINE: dict[str, Callable[[bytes], Answer]] = {
    "HTTP/1.0 without a length": lambda body: head(version="HTTP/1.0") + body,
    "HTTP/1.0 with a length": lambda body: sized(body).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "longer than it says": lambda body: sized(body) + b"more of it",
    "in chunks and of a length": lambda body: chunked(body, "content-length: 3"),
    "trailers": lambda body: chunked(body, last=b"0\r\nx-trailer: a\r\n\r\n"),
    "no reason": lambda body: sized(body).replace(b"200 OK", b"200"),
    "103 ahead, often": lambda body: b"HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n" * 50 + sized(body),
    "a header of 200 KB that is no ASCII": lambda body: sized(body, "x: " + "\xe9" * 200_000),
    "a byte order mark": lambda body: sized(b"\xef\xbb\xbf" + body),
    "gzip": packed("gzip"),
    "br": packed("br"),
    "zstd": packed("zstd"),
    "deflate": packed("deflate"),
    "an encoding that it does not have": lambda body: sized(body, "content-encoding: utf-8"),
}
"""Odd, and yet all there."""


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


@pytest.mark.parametrize("unheard", UNHEARD)
def test_an_answer_without_a_head_is_no_answer(face, scripted, unheard):
    # Its connection may have been idle for too long, so the request is sent again at once.
    check_refused(face, scripted, lambda body: unheard, ConnectError, requests=2)
    server = scripted(unheard, answer(200, user(42)))
    assert READS["get"](face, face.client(server, max_retries=0)) == [42]


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_head_that_is_not_http_is_called_that(each_face, scripted, fault):
    check_refused(each_face, scripted, MALFORMED[fault], TransportError)
    error = each_face.failure(scripted(serve(MALFORMED[fault])), TransportError, max_retries=0)
    assert "the service answered with headers that are not HTTP: " in str(error)
    assert "no answer" not in str(error)


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


TIMEOUT = 0.3


PAUSE = 0.01


def slowly(*pieces: bytes, start: bytes = b"") -> Iterator[bytes]:
    """Sends the pieces one after the other, again and again."""
    yield start
    for piece in itertools.cycle(pieces):
        time.sleep(PAUSE)
        yield piece


CHUNKS = head("transfer-encoding: chunked")


GZIP_START = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"


ENDLESS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a header": lambda: slowly(b"a", start=b"HTTP/1.1 200 OK\r\nx: "),
    "103 Early Hints": lambda: slowly(b"HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n" * 20),
    "a body": lambda: slowly(b" ", start=head()),
    "chunks": lambda: slowly(b"1\r\n \r\n", start=CHUNKS),
    "trailers": lambda: slowly(b"x: a\r\n", start=CHUNKS + b"2\r\n{}\r\n0\r\n"),
    "a gzip that unpacks to nothing": lambda: slowly(
        b"\x00\x00\x00\xff\xff", start=head("content-encoding: gzip") + GZIP_START
    ),
}


def check_timeout(face: Any, server: Any) -> None:
    began = time.monotonic()
    error = face.failure(server, RequestTimeoutError, timeout=TIMEOUT, max_retries=0)
    assert TIMEOUT <= time.monotonic() - began < AT_ONCE
    assert error.attempts[0].seconds_taken < AT_ONCE


@pytest.mark.parametrize("what", ENDLESS)
def test_a_drip_without_an_end_is_a_timeout(face, scripted, what):
    """However often a few bytes come: the timeout is for all of them."""
    check_timeout(face, scripted(lambda request: ENDLESS[what]()))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses")
def test_the_timeout_covers_the_connecting(face, scripted):
    """A service whose queue of connections is full takes no more, and says nothing."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        server = scripted()
        server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        check_timeout(face, server)


def test_the_timeout_covers_the_greetings_of_tls(face, scripted):
    """The server waits for a request in plain text, and the client for the server's hello."""
    server = scripted()
    server.url = server.url.replace("http://127.0.0.1", "https://localhost")
    check_timeout(face, server)


HUGE: dict[str, tuple[Callable[[], Iterator[bytes]], type[Exception]]] = {
    "a header": (lambda: quickly(b"a", b"HTTP/1.1 200 OK\r\nx: "), TransportError),
    "headers": (lambda: quickly(b"x: a\r\n", b"HTTP/1.1 200 OK\r\n"), TransportError),
    "chunks": (lambda: quickly(b"1\r\n \r\n", CHUNKS), ResponseTooLargeError),
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
    check_timeout(face, server)
    assert len(server.requests) < 5
