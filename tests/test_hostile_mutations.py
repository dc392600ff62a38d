"""Real answers with anything done to their bytes: rows or an error of ours, and in time."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("pyarrow")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stage  # noqa: F401 - the settings of these tests
from backread import AsyncClient, BackreadError, Client, IncompleteWarning
from backread.testing import MockServer, World
from hostile import pack
from scripted_server import Request, ScriptedServer
from waiting import AT_ONCE

DEADLINE = 2.0

SNIPPETS = [
    *(b"", b"\0", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"-", b"-0", b"1e999", b"null"),
    *(b"9" * 30, b"\xff", b"\xef\xbb\xbf", rb"\ud800", rb"\u0000", b"[" * 300, b'{"a":' * 300),
    *(b'"id":7,', b'"total":0,', b'"users":[],', b"NaN", b"\r\n", b"\r\n\r\n", b" ", b"\n"),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"),
    *(b"Content-Encoding: gzip\r\n", b"Content-Encoding: br\r\n", b"Content-Encoding: zstd\r\n"),
    *(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n", b"Location: /\r\n"),
]

places = st.floats(0, 1)
changes = st.one_of(
    st.tuples(st.just("cut"), places),
    st.tuples(st.just("flip"), places, st.integers(0, 7)),
    st.tuples(st.just("double"), places, places),
    st.tuples(st.just("delete"), places, places),
    st.tuples(st.just("put"), places, st.sampled_from(SNIPPETS) | st.binary(max_size=8)),
)
mutations = st.tuples(
    st.sampled_from(["", "", "gzip", "br", "zstd"]), st.lists(changes, max_size=6)
)


def mutated(answer: bytes, mutation: tuple[str, list[Any]]) -> bytes:
    encoding, changes = mutation
    if encoding:
        head, body = answer.split(b"\r\n\r\n", 1)
        lines = [one for one in head.split(b"\r\n") if not one.lower().startswith(b"content-l")]
        body = pack(encoding, body)
        lines += [f"Content-Encoding: {encoding}\r\nContent-Length: {len(body)}".encode()]
        answer = b"\r\n".join([*lines, b"", body])
    for kind, *how in changes:
        at = int(how[0] * len(answer))
        if kind == "cut":
            answer = answer[:at]
        elif kind == "flip" and at < len(answer):
            answer = answer[:at] + bytes([answer[at] ^ 1 << how[1]]) + answer[at + 1 :]
        elif kind == "put":
            answer = answer[:at] + how[1] + answer[at:]
        elif kind in ("double", "delete"):
            # Mostly few bytes: all positions of a head are within the first hundredth.
            to = at + int(how[1] ** 4 * (len(answer) - at))
            answer = answer[:to] + answer[at if kind == "double" else to :]
            if kind == "delete":
                answer = answer[:at] + answer[to:]
    return answer


class Mutator:
    """A service that answers as the mock does, but for what is done to the bytes."""

    def __init__(self) -> None:
        self.mock = MockServer(World(seed=7, users=12, messages_per_user=(0, 3)))
        self.real: dict[str, bytes] = {}
        self.mutations: list[tuple[str, list[Any]]] = []
        self.sent = 0
        self.server = ScriptedServer(self.answer)
        self.runner = asyncio.Runner()
        settings = self.server.url, self.server.secret, self.server.vendor
        options: dict[str, Any] = {
            "deadline": DEADLINE,
            "timeout": DEADLINE,
            "max_retries": 1,
            "max_response_bytes": 1_000_000,
        }
        self.client = Client(*settings, **options)
        self.async_client = AsyncClient(*settings, **options)

    def answer(self, request: Request) -> bytes:
        if request.target not in self.real:
            self.real[request.target] = self.ask(request.target)
        real = self.real[request.target]
        self.sent += 1
        return mutated(real, self.mutations[self.sent % len(self.mutations)])

    def ask(self, target: str) -> bytes:
        lines = [
            f"GET {target} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self.mock.secret}",
            f"Accept: application/vnd.{self.mock.vendor}.v1+json",
            "Connection: close\r\n\r\n",
        ]
        port = int(self.mock.url.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall("\r\n".join(lines).encode())
            return b"".join(iter(lambda: connection.recv(65_536), b""))

    def close(self) -> None:
        self.client.close()
        self.runner.run(self.async_client.aclose())
        self.runner.close()
        self.server.close()
        self.mock.close()


@pytest.fixture(scope="module")
def mutator() -> Iterator[Mutator]:
    mutator = Mutator()
    yield mutator
    mutator.close()


READS = [
    lambda client: client.users.get(42),
    lambda client: client.users.page(),
    lambda client: client.messages.page(42, as_dict=True),
    lambda client: client.users.list(page_size=5).to_list(),
    lambda client: client.users.list(page_size=5, as_dict=True).to_list(),
    lambda client: client.users.list(page_size=5).to_arrow(),
    lambda client: client.messages.all().to_list(),
]


def check(mutator: Mutator, mutations: list[Any], read: Any) -> None:
    mutator.mutations = mutations

    async def read_async() -> Any:
        return await read(mutator.async_client)

    for run in (lambda: read(mutator.client), lambda: mutator.runner.run(read_async())):
        mutator.sent = 0
        began = time.monotonic()
        # Any other error is a fault of ours. The warning names a list that could not be read.
        with contextlib.suppress(BackreadError, IncompleteWarning):
            assert run() is not None
        assert time.monotonic() - began < DEADLINE + AT_ONCE


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(mutations=st.lists(mutations, min_size=1, max_size=4), read=st.sampled_from(READS))
def test_whatever_is_done_to_an_answer_it_is_rows_or_an_error_of_ours_and_in_time(
    mutator, mutations, read
):
    check(mutator, mutations, read)
