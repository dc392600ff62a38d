"""A service that speaks HTTP/2 alone, over TLS; answers as `SecureServer` does."""

import contextlib
import http.server
import json
import socket
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

from helpers.api_rows import envelope, user, users
from helpers.keepalive_server import KeptServer
from helpers.tls_server import Authority


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection, with many streams."""

    server: Any

    def handle(self) -> None:
        number, answered = self.server.connections, 0
        with contextlib.suppress(OSError, ProtocolError):
            self.connection.do_handshake()  # type: ignore[attr-defined]
            speech = H2Connection(H2Configuration(client_side=False, header_encoding=None))
            speech.initiate_connection()
            self.connection.sendall(speech.data_to_send())
            while received := self.connection.recv(65536):
                if number <= self.server.deaf:
                    continue
                for event in speech.receive_data(received):
                    if isinstance(event, RequestReceived):
                        answered += 1
                        if self.server.answers is not None and answered > self.server.answers:
                            self._go_away(speech, event.stream_id)
                            return
                        self._answer(speech, event)
                self.connection.sendall(speech.data_to_send())

    def _go_away(self, speech: H2Connection, stream: int) -> None:
        # The streams above the last one that was answered were not processed.
        speech.close_connection(last_stream_id=stream - 2)
        self.connection.sendall(speech.data_to_send())
        # Otherwise what is not read yet would reset the connection.
        self.connection.shutdown(socket.SHUT_WR)
        while self.connection.recv(65536):
            pass

    def _answer(self, speech: H2Connection, event: RequestReceived) -> None:
        self.server.requests.append(list(event.headers))
        if self.server.refuses > 0:
            self.server.refuses -= 1
            speech.reset_stream(event.stream_id, ErrorCodes.REFUSED_STREAM)
            return
        path = dict(event.headers)[b":path"]
        body = user(42) if path.endswith(b"/42") else envelope(users(5))
        if b"/messages" in path:
            body = envelope([], key="messages")
        speech.send_headers(event.stream_id, [(":status", "200")])
        speech.send_data(event.stream_id, json.dumps(body).encode(), end_stream=True)


class Http2Server(KeptServer):
    """Listens on a free port to the end of its ``with`` block."""

    def __init__(
        self, authority: Authority, *, answers: int | None = None, refuses: int = 0
    ) -> None:
        """Ends each connection with GOAWAY after this many ``answers``, as nginx does.

        Resets the first ``refuses`` streams of all with REFUSED_STREAM. Connections up to the
        number ``deaf`` stay open, but nothing is answered any more, as after a failover.
        """
        context = authority.context("localhost")
        context.set_alpn_protocols(["h2"])
        super().__init__(context, "localhost", Handler)
        self.answers, self.refuses, self.deaf = answers, refuses, 0
