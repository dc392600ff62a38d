"""A proxy: a tunnel to one server whatever host is asked for, and canned answers to plain http.

with ProxyServer(secure.server_port) as proxy:
    Client("https://chat.example.com", ..., proxy=proxy.url)
assert proxy.requests[0].method == "CONNECT"
"""

from __future__ import annotations

import contextlib
import http.server
import select
import socket
import ssl
from collections.abc import Callable
from typing import Any

from helpers.keepalive_server import KeptServer
from helpers.scripted_server import Request


class Handler(http.server.BaseHTTPRequestHandler):
    server: ProxyServer

    def do_CONNECT(self) -> None:
        self._note()
        if self.server.refusal is not None:
            self.connection.sendall(self.server.refusal)
            return
        self.connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.server.tunnel_port)) as far,
        ):
            relay(self.connection, far)

    def do_GET(self) -> None:
        self.connection.sendall(self.server.plain(self._note()))

    def _note(self) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers)
        self.server.requests.append(request)
        self.close_connection = True
        return request

    def log_message(self, *arguments: Any) -> None:
        pass


def relay(near: socket.socket, far: socket.socket) -> None:
    other = {near: far, far: near}
    while True:
        for ready in select.select(list(other), [], [])[0]:
            received = ready.recv(65536)
            if not received:
                return
            other[ready].sendall(received)


class ProxyServer(KeptServer):
    """Listens on a free port from its beginning to the end of its ``with`` block.

    ``refusal`` is sent in place of a tunnel; ``plain`` answers requests without one.
    """

    def __init__(
        self,
        tunnel_port: int = 0,
        *,
        refusal: bytes | None = None,
        plain: Callable[[Request], bytes] = lambda request: b"",
        context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(context, handler=Handler)
        self.tunnel_port = tunnel_port
        self.refusal = refusal
        self.plain = plain
        self.address = f"127.0.0.1:{self.server_port}"
