"""A server on Python's own, for what needs connections that are kept, TLS or tunnels.

with KeptServer() as server:
    server.client().users.get(42)
assert server.connections == 1
"""

import contextlib
import http.server
import json
import ssl
import threading
from typing import Any, Self

from helpers.api_rows import envelope, user, users
from helpers.scripted_server import Place


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers every GET with user 42, or with the one page of users, over HTTP/1.1."""

    protocol_version = "HTTP/1.1"
    server: Any

    def do_GET(self) -> None:
        one = self.path.endswith("/42")
        body = json.dumps(user(42) if one else envelope(users(5))).encode()
        self.server.requests.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        version = getattr(self.connection, "version", lambda: None)()
        self.server.versions.append(version)
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        # In one piece, or the second would wait for the first to be acknowledged.
        self._headers_buffer += [b"\r\n", body]  # type: ignore[attr-defined]
        self.flush_headers()
        # Without the header that would announce it.
        self.close_connection = not self.server.keeps

    def log_message(self, *arguments: Any) -> None:
        pass


class KeptServer(Place, http.server.ThreadingHTTPServer):
    """Listens on a free port from its beginning to the end of its ``with`` block.

    It speaks TLS with a ``context``, and ends each connection after an answer unless it ``keeps``.
    """

    daemon_threads = True
    keeps = True

    def __init__(
        self,
        context: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        handler: type[http.server.BaseHTTPRequestHandler] = Handler,
    ) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.versions: list[str | None] = []
        self.connections = 0
        self._context = context
        self.url = f"{'https' if context else 'http'}://{host}:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def get_request(self) -> Any:
        connection, address = super().get_request()
        self.connections += 1
        if self._context is not None:
            # The handshake comes in the connection's own thread.
            connection = self._context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that refuses the certificate goes away, as it should."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.shutdown()
        self._thread.join()
        with contextlib.suppress(OSError):
            self.server_close()
