"""The server of the page: loopback only, and no patience with slow clients."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

from backread._browse.files import Reply
from backread._browse.site import Site
from backread.mirror.published.snapshot_reader import InterruptibleReader

LOOPBACK = "127.0.0.1"

SECONDS_TO_ASK = 10.0
"""How long a client may take to send its request, or to take the reply."""


class BrowseServer(ThreadingHTTPServer):
    """Serves a mirror's page on loopback, from its construction until `close`.

    Args:
        folder: The mirror's folder.
        port: The port; 0 for a free one.
        on_error: Called with a line about an error in backread, from any thread.

    Raises:
        MirrorError: Nothing is published in the folder, or it cannot be read.
        OSError: The port cannot be used.
    """

    # `server_close` waits for their threads: what queries gave must not outlive the interpreter.
    daemon_threads = False
    request_queue_size = 128
    # On Windows this would let another program take the port as well.
    allow_reuse_address = os.name != "nt"

    def __init__(
        self, folder: Path, port: int = 0, on_error: Callable[[str], object] = lambda line: None
    ) -> None:
        self._reader = InterruptibleReader(folder)
        self._reader.snapshot()
        self._connections: set[socket.socket] = set()
        super().__init__((LOOPBACK, port), _Handler)
        try:
            self.site = Site(self._reader, self.server_port, on_error)
        except BaseException:
            self.server_close()
            raise
        self._thread = threading.Thread(
            target=self.serve_forever,
            kwargs={"poll_interval": 0.2},
            name="backread-browse",
            daemon=True,
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page, with the token; it can be opened any number of times."""
        return self.site.entrance(self.site.token)

    def one_time_url(self) -> str:
        """An address of the page that can be opened once.

        A program that is started with an address shows it to other users of the machine.
        """
        return self.site.entrance(self.site.ticket())

    def close(self) -> None:
        """Ends the server, its connections, and queries that are running."""
        self.shutdown()
        for each in list(self._connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._reader.close()
        self.server_close()

    def __exit__(self, *unused: object) -> None:
        self.close()

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the name service for the name of the host.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._connections.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: the client has gone, and other errors are answered."""


class _Handler(BaseHTTPRequestHandler):
    """Passes requests to the site. One request a connection, so that no idle one holds a thread."""

    timeout = SECONDS_TO_ASK
    server_version = "backread"
    sys_version = ""

    def do_GET(self) -> None:
        # The names of headers are the same in any case (RFC 9110 section 5.1).
        headers = {name.title(): value for name, value in self.headers.items()}
        self._send(self._browse.site.respond(self.path, headers, self.connection))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuses what http.server refuses: other methods, and what is not HTTP."""
        self._send(self._browse.site.refusal(405 if code == 501 else int(code)))

    @property
    def _browse(self) -> BrowseServer:
        assert isinstance(self.server, BrowseServer)
        return self.server

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        size = len(reply.body) if reply.file is None else reply.file.stat().st_size
        self.send_header("Content-Length", str(size))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":  # whose refusal has no body
            self.wfile.write(reply.body)
            if reply.file is not None:
                with reply.file.open("rb") as file:
                    shutil.copyfileobj(file, self.wfile)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Logs nothing: addresses have the words that were searched for."""
