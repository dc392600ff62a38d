"""A server of canned bytes on a free port of this machine, for what a well-behaved one never sends.

    server = ScriptedServer(answer(503), answer(200, {"id": 42}))
    ...
    assert [request.path for request in server.requests] == ["/external/users/42"] * 2

Each request takes the next answer of the script, and its connection is closed after it. Where the
script is used up the answer is a 410 that says so, which no client sends again. A function in the
script is called with its `Request`; one function alone is called with each. An answer is:

- bytes, sent as they are (`answer` makes a whole response), `HANG_UP` for none;
- an iterable of bytes, sent piece by piece (`ScriptedServer.stall` makes one that never ends);
- `RESET`, which breaks the connection; so it does as a piece, after those before it.
"""

import contextlib
import http.client
import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from backread import AsyncClient, Client

HANG_UP = b""


class Break(Enum):
    """What is done to a connection instead of an answer."""

    RESET = auto()


RESET = Break.RESET

Answer: TypeAlias = bytes | Iterable[bytes | Break] | Break


@dataclass(frozen=True)
class Request:
    """One request as it came; header names in lower case."""

    method: str
    target: str
    headers: dict[str, str]

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


def answer(
    status: int = 200,
    body: bytes | str | Any = b"",
    headers: Mapping[str, str] | None = None,
    *,
    content_type: str = "application/json; charset=utf-8",
) -> bytes:
    """A whole response. A body that is no bytes and no text is sent as its JSON."""
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, bytes):
        body = json.dumps(body).encode()
    reason = next((known.phrase for known in HTTPStatus if known == status), "Unknown")
    fields = {
        "content-type": content_type,
        "content-length": str(len(body)),
        "connection": "close",
        **{name.lower(): value for name, value in (headers or {}).items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} {reason}\r\n{head}\r\n".encode("latin-1") + body


USED_UP = answer(410, "the script has no more answers")


class Place:
    """What clients are made for; so is a `MockServer`."""

    url: str
    secret = "secret-of-the-service"
    vendor = "example"

    def client(self, **options: Any) -> Client:
        return Client(self.url, self.secret, self.vendor, **options)

    def async_client(self, **options: Any) -> AsyncClient:
        return AsyncClient(self.url, self.secret, self.vendor, **options)


class Handler(socketserver.StreamRequestHandler):
    """One connection, with one request."""

    server: "ScriptedServer"

    def handle(self) -> None:
        # A client may go away.
        with contextlib.suppress(OSError):
            first = self.rfile.readline().decode("latin-1")
            if "HTTP/1" not in first:
                # No request, as the greeting of TLS: no answer.
                self.rfile.read()
                return
            method, target, _ = first.split(" ")
            given = http.client.parse_headers(self.rfile)
            headers = {name.lower(): value for name, value in given.items()}
            self._send(self.server.next_answer(Request(method, target, headers)))

    def _send(self, chosen: Answer) -> None:
        for piece in [chosen] if isinstance(chosen, (bytes, Break)) else chosen:
            if isinstance(piece, Break):
                reset = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                self.server.broken.add(self.connection)
                return
            self.connection.sendall(piece)


class ScriptedServer(Place, socketserver.ThreadingTCPServer):
    """Listens from the moment it is made until `close`; also a context manager."""

    request_queue_size = 128

    def __init__(
        self, *script: Answer | Callable[[Request], Answer], secret: str = "scripted-secret"
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.secret = secret
        self.requests: list[Request] = []
        self.broken: set[socket.socket] = set()
        self.port: int = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._script = iter(script)
        # One function alone answers all that comes.
        self._always = script[0] if len(script) == 1 and callable(script[0]) else None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._errors: list[Exception] = []
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()

    def stall(self, first: bytes = b"") -> Iterator[bytes]:
        """An answer that sends ``first`` and then nothing more until the server is closed."""
        yield first
        self._closing.wait()

    def close(self) -> None:
        """Ends everything; raises what a function in place of a script raised."""
        if not self._closing.is_set():
            self._closing.set()
            self.shutdown()
            self._thread.join()
            for connection in [*self._open]:
                # It may be closed already.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self.server_close()
        if self._errors:
            raise self._errors[0]

    def __exit__(self, *raised: object) -> None:
        self.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        if request in self.broken:
            request.close()
        else:
            super().shutdown_request(request)

    def next_answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            chosen = self._always or next(self._script, USED_UP)
        try:
            return chosen(request) if callable(chosen) else chosen
        except Exception as error:
            self._errors.append(error)
            return answer(410, f"the script failed: {error!r}")
