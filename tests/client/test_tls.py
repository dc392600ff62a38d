"""TLS: whose certificates are trusted, what is refused, and what a user is told to do then."""

import contextlib
import http.server
import os
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backread import Client, ConfigurationError, ConnectError
from helpers.keepalive_server import KeptServer
from helpers.python_process import check_silent, run

# The authority of the tests; the wheel is checked without it.
pytest.importorskip("trustme")


from helpers.tls_server import Authority, SecureServer, forged, self_signed

DAY = timedelta(days=1)


pytestmark = pytest.mark.usefixtures("no_settings")


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


def refused(face: Any, server: SecureServer, *words: str, **options: Any) -> None:
    """The error names the host, and nothing was tried a second time."""
    error = face.failure(server, ConnectError, timeout=20, **options)
    for word in (*words, server.url.removeprefix("https://"), "/external/users/42"):
        assert word in str(error)
    assert server.secret not in str(error)
    assert len(error.attempts) == 1
    assert not server.requests


def trusted(face: Any, server: SecureServer, ca_bundle: Any = None) -> None:
    assert face.get(server, ca_bundle=ca_bundle, max_retries=0).id == 42


def test_the_certificates_of_ssl_cert_file_are_trusted_besides_those_of_ca_bundle(
    face, serve, authority, another, tmp_path, monkeypatch
):
    monkeypatch.setenv("SSL_CERT_FILE", str(another.file))
    for issuer in (authority, another):
        trusted(face, serve(issuer.context("localhost")), authority.file)
    # A bundle may have other things in it.
    mixed = tmp_path / "mixed.pem"
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    mixed.write_text(f"# our own\r\n{key}{authority.file.read_text()}\n")
    trusted(face, serve(authority.context("localhost")), str(mixed))
    refused(face, serve(authority.context("localhost")), "ca_bundle", "SSL_CERT_FILE")


def test_the_certificates_of_ssl_cert_dir_are_trusted(
    face, serve, authority, another, tmp_path, monkeypatch
):
    (tmp_path / "readme.txt").write_text("no certificate\n")
    folders = [tmp_path / "missing", authority.file.parent, tmp_path, another.file.parent]
    monkeypatch.setenv("SSL_CERT_DIR", os.pathsep.join(map(str, folders)))
    for issuer in (authority, another):
        trusted(face, serve(issuer.context("localhost")))


@pytest.mark.parametrize("added", ["nothing", "SSL_CERT_FILE", "SSL_CERT_DIR", "ca_bundle"])
def test_what_is_added_leaves_the_roots_of_the_system_in_place(
    face, serve, authority, tmp_path, monkeypatch, added
):
    """A root that is known makes a forged certificate a bad signature, not an unknown issuer."""
    roots = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not roots:
        pytest.skip("this system trusts nobody")
    options = {"ca_bundle": authority.file} if added == "ca_bundle" else {}
    if added.startswith("SSL"):
        file = authority.file
        monkeypatch.setenv(added, str(file if added == "SSL_CERT_FILE" else file.parent))
    server = serve(forged(tmp_path, "localhost", roots[0]))
    refused(face, server, "certificate", "ignature", **options)


def test_a_self_signed_certificate_is_refused_until_it_is_trusted(face, serve, tmp_path):
    context, file = self_signed(tmp_path, "localhost")
    server = serve(context)
    refused(face, server, "invalid peer certificate")
    trusted(face, server, file)


def test_an_unknown_authority_is_refused_once_with_what_to_do(face, serve, authority):
    server = serve(authority.context("localhost"))
    refused(face, server, "UnknownIssuer", "authority", "ca_bundle", "SSL_CERT_FILE")
    assert server.connections == 1
    with pytest.raises(ConnectError, match="ca_bundle"):
        face.collect(face.client(server).users.list())
    assert server.connections == 2


def test_a_certificate_out_of_its_time_is_refused(face, serve, authority):
    now = datetime.now(UTC)
    past = authority.context("localhost", not_before=now - 9 * DAY, not_after=now - DAY)
    refused(face, serve(past), "expired", "clock", ca_bundle=authority.file)
    future = authority.context("localhost", not_before=now + DAY, not_after=now + 9 * DAY)
    refused(face, serve(future), "not valid yet", ca_bundle=authority.file)


@pytest.mark.parametrize(
    ("issued", "host"),
    [
        ("chat.example.com", "localhost"),
        ("127.0.0.2", "127.0.0.1"),
        ("*.localhost", "localhost"),
    ],
)
def test_a_certificate_of_another_host_is_refused(face, serve, authority, issued, host):
    server = serve(authority.context(issued), host=host)
    refused(face, server, "certificate", "base_url", ca_bundle=authority.file)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_older_versions_are_refused(face, serve, authority):
    context = authority.context("localhost")
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    refused(face, serve(context), ca_bundle=authority.file)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_client_certificate_is_an_error(face, serve, authority, version):
    context = authority.context("localhost")
    context.minimum_version = context.maximum_version = version
    authority.trusted_by(context)
    refused(face, serve(context), "received fatal alert", ca_bundle=authority.file)


class PlainHandler(http.server.BaseHTTPRequestHandler):
    """Answers the greeting of TLS as nginx does."""

    def handle(self) -> None:
        self.connection.recv(65536)
        self.wfile.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_plain_http_on_the_port_of_https_is_an_error_that_says_so(face):
    with KeptServer(handler=PlainHandler) as plain:
        plain.url = plain.url.replace("http:", "https:")
        refused(face, plain, "does not speak TLS", "base_url")


def test_nothing_switches_the_check_off(face, serve, authority, monkeypatch):
    monkeypatch.setenv("PYTHONHTTPSVERIFY", "0")
    monkeypatch.setenv("CURL_INSECURE", "1")
    refused(face, serve(authority.context("localhost")), "certificate")
    with pytest.raises(TypeError):
        face.kind("https://localhost", "secret", "example", verify=False)


def test_the_keys_of_a_connection_are_written_nowhere(serve, authority, tmp_path):
    """SSLKEYLOGFILE would let its readers decrypt the traffic, the secret in it."""
    server = serve(authority.context("localhost"))
    keys = tmp_path / "keys"
    code = f"from backread import Client; Client(ca_bundle={str(authority.file)!r}).users.get(42)"
    check_silent(run(code, server, SSLKEYLOGFILE=str(keys)))
    assert not keys.exists()


@pytest.mark.parametrize("name", ["missing", "folder", "empty", "key"])
def test_an_ssl_cert_file_that_cannot_be_used_is_named(authority, tmp_path, monkeypatch, name):
    """Left out in silence, it would make a certificate refused that it vouches for."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "key").write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    file = tmp_path / name
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE") as caught:
        Client("https://localhost", "secret", "example")
    assert str(file) in str(caught.value)
    assert "PEM" in str(caught.value)
