"""A service that speaks HTTP/2 alone, over TLS; answers as `SecureServer` does."""

import contextlib
import json
import socket
import threading
import time
from typing import Any, Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import RequestReceived
from h2.exceptions import ProtocolError

from helpers.api_rows import envelope, user, users
from helpers.scripted_server import Place
from helpers.tls_server import Authority


class Http2Server(Place):
    """Listens on a free port to the end of its ``with`` block."""

    def __init__(
        self, authority: Authority, *, answers: int | None = None, refuses: int = 0
    ) -> None:
        """Ends each connection with GOAWAY after so many ``answers``, as nginx does.

        Resets the first ``refuses`` streams of all with REFUSED_STREAM. Connections up to the
        number ``deaf`` stay open, but nothing is answered any more, as after a failover. An answer
        takes ``seconds``, in which PINGs are left without one, too.
        """
        self._answers, self.refuses, self.deaf, self.seconds = answers, refuses, 0, 0.0
        self._context = authority.context("localhost")
        self._context.set_alpn_protocols(["h2"])
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self._listener.getsockname()[1]}"
        self.connections = 0
        self.requests: list[list[Any]] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        # A client that failed is still connected.
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                arguments = (connection, self.connections)
                thread = threading.Thread(target=self._serve, args=arguments)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with (
            contextlib.suppress(OSError, ProtocolError),
            self._context.wrap_socket(connection, server_side=True) as secure,
        ):
            self._open.append(secure)
            if secure.selected_alpn_protocol() != "h2":
                return
            speech = H2Connection(H2Configuration(client_side=False, header_encoding=None))
            speech.initiate_connection()
            secure.sendall(speech.data_to_send())
            answered = 0
            while received := secure.recv(65536):
                if number <= self.deaf:
                    continue
                for event in speech.receive_data(received):
                    if isinstance(event, RequestReceived):
                        answered += 1
                        if self._answers is not None and answered > self._answers:
                            # The streams above the last one that was answered were not processed.
                            last = event.stream_id - 2
                            speech.close_connection(last_stream_id=last)
                            secure.sendall(speech.data_to_send())
                            # Otherwise what is not read yet would reset the connection.
                            secure.shutdown(socket.SHUT_WR)
                            while secure.recv(65536):
                                pass
                            return
                        self._answer(speech, event)
                secure.sendall(speech.data_to_send())

    def _answer(self, speech: H2Connection, event: RequestReceived) -> None:
        time.sleep(self.seconds)
        self.requests.append(list(event.headers))
        if self.refuses > 0:
            self.refuses -= 1
            speech.reset_stream(event.stream_id, ErrorCodes.REFUSED_STREAM)
            return
        path = dict(event.headers)[b":path"]
        body = user(42) if path.endswith(b"/42") else envelope(users(5))
        if b"/messages" in path:
            body = envelope([], key="messages")
        speech.send_headers(event.stream_id, [(":status", "200")])
        speech.send_data(event.stream_id, json.dumps(body).encode(), end_stream=True)
