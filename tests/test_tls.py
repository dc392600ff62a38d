"""TLS: whose certificates are trusted, what is refused, and what a user is told to do then."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from backread import Client, ConfigurationError, ConnectError
from canned import user
from interpreter import environment
from scripted_server import answer

# The authority of the tests; the wheel is checked without it.
pytest.importorskip("trustme")

from secure_server import Authority, SecureServer, forged, self_signed

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("another"), "another")


Serve = Callable[..., SecureServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with contextlib.ExitStack() as cleanup:

        def start(context: ssl.SSLContext, **options: Any) -> SecureServer:
            return cleanup.enter_context(SecureServer(context, **options))

        yield start


def refused(face: Any, server: SecureServer, *words: str, **options: Any) -> str:
    """The message of the error; it names the host, and nothing was tried a second time."""
    client = face.client(server, timeout=20, **options)
    with pytest.raises(ConnectError) as caught:
        face.call(client.users.get, 42)
    message = str(caught.value)
    for word in (*words, server.url.removeprefix("https://"), "/external/users/42"):
        assert word in message
    assert server.secret not in message
    assert len(caught.value.attempts) == 1
    assert server.requests == []
    return message


def test_the_certificates_of_ca_bundle_are_trusted(
    face: Any, serve: Serve, authority: Authority
) -> None:
    server = serve(authority.context("localhost"))
    for ca_bundle in (authority.file, str(authority.file)):
        client = face.client(server, ca_bundle=ca_bundle, max_retries=0)
        assert face.call(client.users.get, 42).id == 42


def test_the_certificates_of_ssl_cert_file_are_trusted_besides_those_of_ca_bundle(
    face: Any,
    serve: Serve,
    authority: Authority,
    another: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(another.file))
    for issuer in (authority, another):
        server = serve(issuer.context("localhost"))
        client = face.client(server, ca_bundle=authority.file, max_retries=0)
        assert face.call(client.users.get, 42).id == 42
    server = serve(authority.context("localhost"))
    refused(face, server, "ca_bundle", "SSL_CERT_FILE")


def test_the_certificates_of_ssl_cert_dir_are_trusted(
    face: Any,
    serve: Serve,
    authority: Authority,
    another: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "readme.txt").write_text("no certificate\n")
    folders = [tmp_path / "missing", authority.file.parent, tmp_path, another.file.parent]
    monkeypatch.setenv("SSL_CERT_DIR", os.pathsep.join(map(str, folders)))
    for issuer in (authority, another):
        server = serve(issuer.context("localhost"))
        client = face.client(server, max_retries=0)
        assert face.call(client.users.get, 42).id == 42


def system_root() -> bytes:
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not found:
        pytest.skip("this system trusts nobody")
    return found[0]


@pytest.mark.parametrize("variable", [None, "SSL_CERT_FILE", "SSL_CERT_DIR"])
@pytest.mark.parametrize("with_bundle", [False, True])
def test_what_is_added_leaves_the_roots_of_the_system_in_place(
    serve: Serve,
    authority: Authority,
    another: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    with_bundle: bool,
) -> None:
    """A root that is known makes a forged certificate a bad signature, not an unknown issuer."""
    server = serve(forged(tmp_path, "localhost", system_root()))
    if variable is not None:
        added = another.file if variable == "SSL_CERT_FILE" else another.file.parent
        monkeypatch.setenv(variable, str(added))
    ca_bundle = authority.file if with_bundle else None
    with (
        Client(server.url, server.secret, server.vendor, ca_bundle=ca_bundle) as client,
        pytest.raises(ConnectError, match="certificate") as caught,
    ):
        client.users.get(42)
    assert "UnknownIssuer" not in str(caught.value)
    assert "ignature" in str(caught.value)
    assert len(caught.value.attempts) == 1


def test_a_self_signed_certificate_is_refused_until_it_is_trusted(
    face: Any, serve: Serve, tmp_path: Path
) -> None:
    context, file = self_signed(tmp_path, "localhost")
    server = serve(context)
    refused(face, server, "certificate", "ca_bundle=", "SSL_CERT_FILE")
    client = face.client(server, ca_bundle=file, max_retries=0)
    assert face.call(client.users.get, 42).id == 42


def test_an_unknown_authority_is_refused_once_with_what_to_do(
    face: Any, serve: Serve, authority: Authority
) -> None:
    server = serve(authority.context("localhost"))
    refused(face, server, "UnknownIssuer", "authority", "ca_bundle=", "SSL_CERT_FILE")
    assert server.connections == 1
    with pytest.raises(ConnectError, match="ca_bundle="):
        face.collect(face.client(server).users.list())
    assert server.connections == 2


def test_an_intermediate_that_the_server_sends_is_followed_to_its_root(
    face: Any, serve: Serve, authority: Authority
) -> None:
    server = serve(authority.context("localhost", intermediate=True))
    client = face.client(server, ca_bundle=authority.file, max_retries=0)
    assert face.call(client.users.get, 42).id == 42


def test_an_intermediate_that_the_server_leaves_out_is_named_as_a_reason(
    face: Any, serve: Serve, authority: Authority
) -> None:
    server = serve(authority.context("localhost", intermediate=True, chain=False))
    refused(face, server, "intermediate", ca_bundle=authority.file)


def test_a_certificate_out_of_its_time_is_refused(
    face: Any, serve: Serve, authority: Authority
) -> None:
    now = datetime.now(UTC)
    past = authority.context("localhost", not_before=now - 9 * DAY, not_after=now - DAY)
    refused(face, serve(past), "expired", "clock", ca_bundle=authority.file)
    future = authority.context("localhost", not_before=now + DAY, not_after=now + 9 * DAY)
    refused(face, serve(future), "not valid yet", "clock", ca_bundle=authority.file)


@pytest.mark.parametrize(
    ("issued", "host"),
    [
        ("chat.example.com", "localhost"),
        ("localhost", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.1"),
        ("*.localhost", "localhost"),
        ("*.example.com", "127.0.0.1"),
    ],
)
def test_a_certificate_of_another_host_is_refused(
    face: Any, serve: Serve, authority: Authority, issued: str, host: str
) -> None:
    server = serve(authority.context(issued), host=host)
    refused(face, server, "certificate", "base_url", ca_bundle=authority.file)


def test_an_address_may_be_what_a_certificate_names(
    face: Any, serve: Serve, authority: Authority
) -> None:
    server = serve(authority.context("127.0.0.1"), host="127.0.0.1")
    client = face.client(server, ca_bundle=authority.file, max_retries=0)
    assert face.call(client.users.get, 42).id == 42


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken(
    face: Any, serve: Serve, authority: Authority, version: ssl.TLSVersion
) -> None:
    context = authority.context("localhost")
    context.minimum_version = context.maximum_version = version
    server = serve(context)
    client = face.client(server, ca_bundle=authority.file, max_retries=0)
    assert face.call(client.users.get, 42).id == 42
    assert server.versions == [version.name.replace("_", ".")]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
def test_older_versions_are_refused(
    face: Any, serve: Serve, authority: Authority, version: str
) -> None:
    context = authority.context("localhost")
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    refused(face, serve(context), "TLS 1.2", ca_bundle=authority.file)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_client_certificate_is_an_error_that_says_so(
    face: Any, serve: Serve, authority: Authority, version: ssl.TLSVersion
) -> None:
    context = authority.context("localhost")
    context.minimum_version = context.maximum_version = version
    authority.trusted_by(context)
    refused(face, serve(context), "client certificate", ca_bundle=authority.file)


def test_plain_http_on_the_port_of_https_is_an_error_that_says_so(
    face: Any, authority: Authority
) -> None:
    class Plain:
        secret, vendor = SecureServer.secret, SecureServer.vendor
        requests: ClassVar[list[str]] = []

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Plain.url = f"https://127.0.0.1:{listener.getsockname()[1]}"

        def serve_one() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.shutdown(socket.SHUT_WR)
                connection.recv(65536)

        thread = threading.Thread(target=serve_one)
        thread.start()
        refused(face, Plain, "does not speak TLS", "base_url")
        thread.join()


def test_https_on_the_port_of_http_is_an_error(
    face: Any, serve: Serve, authority: Authority
) -> None:
    server = serve(authority.context("localhost"))
    server.url = f"http://127.0.0.1:{server.server_port}"
    with pytest.raises(ConnectError, match="base_url"):
        face.call(face.client(server, max_retries=0).users.get, 42)


@pytest.mark.parametrize("variable", ["PYTHONHTTPSVERIFY", "CURL_INSECURE", "BACKREAD_VERIFY"])
def test_nothing_switches_the_check_off(
    face: Any,
    serve: Serve,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    monkeypatch.setenv(variable, "0")
    refused(face, serve(authority.context("localhost")), "certificate")
    with pytest.raises(TypeError):
        face.kind("https://localhost", "secret", "example", verify=False)


def test_the_keys_of_a_connection_are_written_nowhere(
    serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    """SSLKEYLOGFILE would let whoever reads it decrypt the traffic, the secret in it."""
    server = serve(authority.context("localhost"))
    keys = tmp_path / "keys"
    code = "from backread import Client; print(Client(ca_bundle={!r}).users.get(42).id)"
    done = subprocess.run(
        [sys.executable, "-c", code.format(str(authority.file))],
        env={**environment(server), "SSLKEYLOGFILE": str(keys)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "42", done.stderr
    assert not keys.exists()


@pytest.mark.parametrize("name", ["missing", "folder", "empty", "text", "key"])
def test_an_ssl_cert_file_that_cannot_be_used_is_named(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Left out in silence, it would make a certificate refused that it vouches for."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("no certificate")
    (tmp_path / "key").write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    file = tmp_path / name
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE") as caught:
        Client("https://localhost", "secret", "example")
    assert str(file) in str(caught.value)
    assert "PEM" in str(caught.value)


def test_variables_that_are_set_to_nothing_are_not_set(
    face: Any, serve: Serve, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "")
    server = serve(authority.context("localhost"))
    client = face.client(server, ca_bundle=authority.file, max_retries=0)
    assert face.call(client.users.get, 42).id == 42


def test_certificates_are_nothing_to_plain_http_on_this_machine(
    face: Any, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    server = scripted(answer(200, user(42)))
    assert face.call(face.client(server).users.get, 42).id == 42


def test_a_bundle_with_other_things_in_it_is_read(
    face: Any, serve: Serve, authority: Authority, another: Authority, tmp_path: Path
) -> None:
    mixed = tmp_path / "mixed.pem"
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    parts = ["# our own\r\n", another.file.read_text(), key, authority.file.read_text(), "\n\n"]
    mixed.write_text("".join(parts))
    server = serve(authority.context("localhost"))
    client = face.client(server, ca_bundle=mixed, max_retries=0)
    assert face.call(client.users.get, 42).id == 42
