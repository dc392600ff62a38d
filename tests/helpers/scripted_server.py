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
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeAlias
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


class ScriptedServer(Place):
    """Listens from the moment it is made until `close`; also a context manager."""

    def __init__(
        self, *script: Answer | Callable[[Request], Answer], secret: str = "scripted-secret"
    ) -> None:
        self.secret = secret
        self.requests: list[Request] = []
        self._script = iter(script)
        # One function alone answers all that comes.
        self._always = script[0] if len(script) == 1 and callable(script[0]) else None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._errors: list[Exception] = []
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def stall(self, first: bytes = b"") -> Iterator[bytes]:
        """An answer that sends ``first`` and then nothing more until the server is closed."""
        yield first
        self._closing.wait()

    def close(self) -> None:
        """Ends everything; raises what a function in place of a script raised."""
        if not self._closing.is_set():
            self._closing.set()
            # Wakes accept(), which a close() of the listener does not do everywhere.
            socket.create_connection(("127.0.0.1", self.port)).close()
            self._acceptor.join()
            self._listener.close()
            with self._lock:
                connections = list(self._connections.items())
            for connection, thread in connections:
                _shut(connection)
                thread.join()
        if self._errors:
            raise self._errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._closing.is_set():
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._lock:
                self._connections[connection] = thread
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            request = _read_request(connection)
            if request is not None:
                self._send(connection, self._next(request))
        except OSError:
            # The client went away, as it may.
            pass
        finally:
            with self._lock:
                self._connections.pop(connection, None)
            connection.close()

    def _next(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            chosen = self._always or next(self._script, USED_UP)
        try:
            return chosen(request) if callable(chosen) else chosen
        except Exception as error:
            self._errors.append(error)
            return answer(410, f"the script failed: {error!r}")

    def _send(self, connection: socket.socket, chosen: Answer) -> None:
        for piece in [chosen] if isinstance(chosen, (bytes, Break)) else chosen:
            if isinstance(piece, Break):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            connection.sendall(piece)
        _shut(connection, socket.SHUT_WR)


def _read_request(connection: socket.socket) -> Request | None:
    head = b""
    while b"\r\n\r\n" not in head:
        received = connection.recv(65536)
        if not received:
            return None
        head += received
    first, *lines = head.split(b"\r\n\r\n", 1)[0].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    return Request(method, target, {name.lower(): value.strip() for name, _, value in pairs})


def _shut(connection: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    # It may be closed already.
    with contextlib.suppress(OSError):
        connection.shutdown(how)
