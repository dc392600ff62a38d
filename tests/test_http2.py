"""HTTP/2, where server and client agree on it as TLS begins."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any, Self

import pytest

from canned import envelope, ids, user, users

# The authority of the tests, and the server's HTTP/2; the wheel is checked without them.
pytest.importorskip("trustme")
pytest.importorskip("h2")

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
from h2.exceptions import ProtocolError
from hpack import NeverIndexedHeaderTuple

from secure_server import Authority


class Server:
    """Answers in HTTP/2 alone: with user 42, or with the one page of users."""

    secret, vendor = "secret-of-the-service", "example"

    def __init__(self, authority: Authority) -> None:
        self._context = authority.context("localhost")
        self._context.set_alpn_protocols(["h2"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.requests: list[list[Any]] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                thread = threading.Thread(target=self._serve, args=(connection,))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError, ProtocolError),
            self._context.wrap_socket(connection, server_side=True) as secure,
        ):
            if secure.selected_alpn_protocol() != "h2":
                return
            speech = H2Connection(H2Configuration(client_side=False, header_encoding=None))
            speech.initiate_connection()
            secure.sendall(speech.data_to_send())
            while received := secure.recv(65536):
                for event in speech.receive_data(received):
                    if isinstance(event, RequestReceived):
                        self._answer(speech, event)
                secure.sendall(speech.data_to_send())

    def _answer(self, speech: H2Connection, event: RequestReceived) -> None:
        self.requests.append(list(event.headers))
        path = dict(event.headers)[b":path"]
        body = user(42) if path.endswith(b"/42") else envelope(users(5))
        speech.send_headers(event.stream_id, [(":status", "200")])
        speech.send_data(event.stream_id, json.dumps(body).encode(), end_stream=True)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_http_2_is_spoken_on_one_connection(face: Any, authority: Authority) -> None:
    with Server(authority) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        assert face.call(client.users.get, 42).id == 42
        assert ids(face.collect(client.users.list())) == [1, 2, 3, 4, 5]
        assert [one.id for one in face.call(client.users.page)] == [1, 2, 3, 4, 5]
        face.close(client)
    assert len(server.requests) == 3
    assert server.connections <= 2  # a listing may be read by other threads


def test_the_secret_is_kept_out_of_the_tables_that_compress_headers(
    face: Any, authority: Authority
) -> None:
    """A header in such a table can be guessed at by whoever shares the connection (RFC 7541, 7)."""
    with Server(authority) as server:
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        for _ in range(3):
            assert face.call(client.users.get, 42).id == 42
        face.close(client)
    for request in server.requests:
        (authorization,) = [one for one in request if one[0] == b"authorization"]
        assert authorization[1] == f"Bearer {server.secret}".encode()
        assert isinstance(authorization, NeverIndexedHeaderTuple)
