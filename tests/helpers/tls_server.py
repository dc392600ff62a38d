"""A service over TLS, with certificates made for the test by an authority of its own.

authority = Authority(folder)
with SecureServer(authority.context("localhost")) as server:
    Client(server.url, server.secret, server.vendor, ca_bundle=authority.file)


"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from helpers.keepalive_server import KeptServer


class Authority:
    """Issues certificates; ``file`` holds its own, which whoever trusts it is given."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._authority = trustme.CA(organization_name=name)
        self.file = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def context(self, *hosts: str, **issued: Any) -> ssl.SSLContext:
        """A server's context with a new certificate for these hosts."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*hosts, **issued).configure_cert(context)
        return context

    def trusted_by(self, context: ssl.SSLContext) -> None:
        """The server wants a client's certificate from this authority."""
        context.verify_mode = ssl.CERT_REQUIRED
        self._authority.configure_trust(context)


def self_signed(folder: Path, host: str) -> tuple[ssl.SSLContext, Path]:
    """A server's context with a certificate that vouches for itself, and its file."""
    return _alone(folder, host, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]))


def forged(folder: Path, host: str, issuer: bytes) -> ssl.SSLContext:
    """A server's context with a certificate that names an authority (DER) that did not sign it."""
    return _alone(folder, host, x509.load_der_x509_certificate(issuer).subject)[0]


def _alone(folder: Path, host: str, issuer: x509.Name) -> tuple[ssl.SSLContext, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "alone.pem", folder / "alone-key.pem"
    files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return context, files[0]


class SecureServer(KeptServer):
    """A `KeptServer` over TLS."""

    def __init__(self, context: ssl.SSLContext, host: str = "localhost") -> None:
        super().__init__(context, host)
