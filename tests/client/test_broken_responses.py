"""Answers broken on the wire: by each read the same error, and tried again where that helps."""

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from backread import ConnectError, DecodeError, TransportError, TruncatedBodyError
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
from helpers.scripted_server import RESET, Answer, Place


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
