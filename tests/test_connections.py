"""Connections: kept and used again, across clients of one pool; gone stale; and over TLS."""

from __future__ import annotations

import gc
import http.server
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backread import BackreadError, Client, ConnectError
from canned import user


class Service(http.server.ThreadingHTTPServer):
    """Answers every GET with user 42, on connections that it keeps unless told otherwise."""

    daemon_threads = True
    secret, vendor = "secret-of-the-service", "example"

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.connections = 0
        self.ended = 0
        self.changed = threading.Condition()
        self.keeps = True
        self.url = f"http://127.0.0.1:{self.server_port}"
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
            self.url = f"https://localhost:{self.server_port}"

    def get_request(self) -> Any:
        accepted = super().get_request()
        self.connections += 1
        return accepted

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self.changed:
            self.ended += 1
            self.changed.notify_all()

    def check_all_end(self) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.ended == self.connections, 10)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that refuses the certificate goes away, as it should."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        body = json.dumps(user(42)).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        # In one piece, or the second would wait for the first to be acknowledged.
        self._headers_buffer += [b"\r\n", body]
        self.flush_headers()
        # Without the header that would announce it.
        self.close_connection = not self.server.keeps

    def log_message(self, *arguments: Any) -> None:
        pass


def running(service: Service) -> Iterator[Service]:
    thread = threading.Thread(target=service.serve_forever, args=(0.01,))
    thread.start()
    yield service
    service.shutdown()
    thread.join()
    service.server_close()


@pytest.fixture
def service() -> Iterator[Service]:
    yield from running(Service())


def test_connections_are_used_again(face: Any, service: Service) -> None:
    client = face.client(service)
    for _ in range(20):
        assert face.call(client.users.get, 42).id == 42
        assert face.call(client.with_options(timeout=5).users.get, 42).id == 42
    # Rarely one is not back in the pool yet when the next call looks for it.
    assert service.connections < 10


def test_a_connection_that_went_stale_is_no_failure(face: Any, service: Service) -> None:
    service.keeps = False
    client = face.client(service)
    for _ in range(5):
        assert face.call(client.users.get, 42).id == 42
    assert service.connections >= 5


def test_a_connection_that_the_service_ended_between_two_calls_costs_no_attempt(
    service: Service,
) -> None:
    """Nobody looks after it between two calls that wait."""
    service.keeps = False
    with Client(service.url, service.secret, service.vendor, max_retries=0) as client:
        for _ in range(20):
            assert client.users.get(42).id == 42
            service.check_all_end()
    assert service.connections == 20


@pytest.mark.parametrize("end", ["close", "forget"])
def test_no_connection_outlives_its_client(service: Service, end: str) -> None:
    client = Client(service.url, service.secret, service.vendor, max_retries=0)
    assert client.users.get(42).id == 42
    if end == "close":
        client.close()
        with pytest.raises(BackreadError, match="closed"):
            client.users.get(42)
    else:
        del client
        gc.collect()
    service.check_all_end()
    assert service.connections == 1


SETTINGS = """
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = localhost
[extensions]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that nothing else vouches for, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates, and is not here")
    folder = tmp_path_factory.mktemp("certificate")
    made = folder / "certificate.pem", folder / "key.pem"
    settings = folder / "openssl.cnf"
    settings.write_text(SETTINGS)
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-config", str(settings)]
    command += ["-out", str(made[0]), "-keyout", str(made[1])]
    subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.fixture
def secure(certificate: tuple[Path, Path]) -> Iterator[Service]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    yield from running(Service(context))


def test_the_certificates_of_ca_bundle_are_trusted(
    face: Any, secure: Service, certificate: tuple[Path, Path]
) -> None:
    for ca_bundle in (certificate[0], str(certificate[0])):
        client = face.client(secure, ca_bundle=ca_bundle, max_retries=0)
        assert face.call(client.users.get, 42).id == 42


def test_a_certificate_that_nobody_vouches_for_is_refused(face: Any, secure: Service) -> None:
    with pytest.raises(ConnectError, match="certificate") as caught:
        face.call(face.client(secure, max_retries=0).users.get, 42)
    assert "/external/users/42" in str(caught.value)


def test_a_certificate_of_another_host_is_refused(
    face: Any, secure: Service, certificate: tuple[Path, Path]
) -> None:
    secure.url = secure.url.replace("localhost", "127.0.0.1")
    client = face.client(secure, ca_bundle=certificate[0], max_retries=0)
    with pytest.raises(ConnectError, match="certificate"):
        face.call(client.users.get, 42)
