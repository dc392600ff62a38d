"""Services of raw sockets on loopback that misbehave, for `reliability.py`.

A behaviour is a function that is called with each `Exchange`: it sends what it likes. Whether the
connection stays open for another request is what it returns.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

USER = {"id": 42, "name": "Ada Lovelace", "email": "ada@example.com", "reference": "r" * 400}
BODY = json.dumps(USER).encode()
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Request:
    """The head of a request, and when it was there."""

    head: str
    at: float

    def header(self, name: str) -> str | None:
        """The value of a header; None where it was not sent."""
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.strip().lower() == name.lower():
                return value.strip()
        return None


@dataclass
class Exchange:
    """One request, which of all it is (from 1), and the connection that it came on."""

    server: Server
    number: int
    connection: socket.socket
    request: Request

    def send(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self.connection.sendall(data)

    def answer(
        self, body: bytes = BODY, status: int = 200, headers: Mapping[str, str] = JSON
    ) -> bool:
        """Sends a whole answer with an honest length."""
        self.send(head(status, {**headers, "Content-Length": str(len(body))}) + body)
        return True

    def silence(self) -> bool:
        """Sends nothing more until the server is closed."""
        self.server.closing.wait()
        return False

    def wait_for_release(self) -> bool:
        """Sends nothing until a child asks for answers; false if the client goes away before."""
        while not self.server.released.is_set():
            poll = select.poll()
            poll.register(self.connection, select.POLLIN)
            readable = poll.poll(50)
            if self.server.closing.is_set() or (
                readable and not self.connection.recv(1, socket.MSG_PEEK)
            ):
                return False
        return True

    def reset(self) -> bool:
        """Breaks the connection."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


Behaviour = Callable[[Exchange], bool]


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """The head of an answer."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode("latin-1")


def once(fault: Behaviour) -> Behaviour:
    """The fault for the first request, and a good answer for those that follow."""
    return lambda exchange: fault(exchange) if exchange.number == 1 else exchange.answer()


class Server:
    """Listens on a free port of loopback from the moment it is made until `close`."""

    def __init__(self, behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.closing = threading.Event()
        self.asked = threading.Event()
        self.released = threading.Event()
        self._behaviour = behaviour
        self._tls = tls
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        scheme, host = ("http", "127.0.0.1") if tls is None else ("https", "localhost")
        self.url = f"{scheme}://{host}:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            with contextlib.suppress(ConnectionError):
                try:
                    connection, _ = self._listener.accept()
                except OSError:
                    return
                with self._lock:
                    self._open.add(connection)
                    self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        connection = raw
        # A client that goes away, or that does not trust the certificate, may do so.
        with contextlib.suppress(OSError):
            if self._tls is not None:
                connection = self._tls.wrap_socket(raw, server_side=True)
            for text in heads(connection):
                if text.startswith("GET /control/"):
                    self._control(connection, text)
                elif not self._behaviour(self._exchange(connection, text)):
                    break
        with self._lock:
            self._open.discard(raw)
        connection.close()

    def _exchange(self, connection: socket.socket, text: str) -> Exchange:
        request = Request(text, time.monotonic())
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        self.asked.set()
        return Exchange(self, number, connection, request)

    def _control(self, connection: socket.socket, text: str) -> None:
        """What a child asks of the server itself: to say when a request came, or to answer now."""
        if text.startswith("GET /control/release"):
            self.released.set()
        if text.startswith("GET /control/asked"):
            self.asked.wait(10)
        count = str(len(self.requests)).encode()
        connection.sendall(head(200, {"Content-Length": str(len(count))}) + count)

    def close(self) -> None:
        """Ends every connection."""
        self.closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def heads(connection: socket.socket) -> Iterator[str]:
    """The heads of the requests on a connection; none of them has a body."""
    received = b""
    while data := connection.recv(65536):
        received += data
        while b"\r\n\r\n" in received:
            first, received = received.split(b"\r\n\r\n", 1)
            yield first.decode("latin-1")
