"""Looks at a server's TLS certificate, without sending a request."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

__all__ = ["TlsCertificate", "look_at_certificate", "trusting"]

NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL, which Python's ``ssl`` has no name for."""

ISSUER_FIELDS = ("organizationName", "commonName")


@dataclass(frozen=True, slots=True)
class TlsCertificate:
    """What a server showed.

    Attributes:
        issuer: Who issued it; empty if that cannot be read.
        expires: When it expires, UTC; None if that cannot be read.
        version: The version of TLS.
        refused: Why this machine does not trust it, in OpenSSL's words; empty if it does.
    """

    issuer: str
    expires: datetime | None
    version: str
    refused: str


def look_at_certificate(
    host: str, port: int, ca_bundle: str | os.PathLike[str] | None, timeout: float
) -> TlsCertificate:
    """Makes one or three handshakes, and closes the connection after each.

    Raises:
        OSError: The handshake failed for another reason than the TLS certificate.
    """
    try:
        return _handshake(trusting(ca_bundle), host, port, timeout, "")
    except ssl.SSLCertVerificationError as error:
        refused = error.verify_message
    # A refused certificate is only decoded for who trusts it: so it is fetched, and trusted.
    blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blind.check_hostname = False
    blind.verify_mode = ssl.CERT_NONE
    with _connected(blind, host, port, timeout) as connection:
        encoded, version = connection.getpeercert(binary_form=True), connection.version() or ""
    seeing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    seeing.check_hostname = False
    seeing.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    seeing.verify_flags = ssl.VerifyFlags(seeing.verify_flags | NO_CHECK_TIME)
    try:
        if encoded is not None:
            seeing.load_verify_locations(cadata=encoded)
        return _handshake(seeing, host, port, timeout, refused)
    except ssl.SSLError:
        return TlsCertificate("", None, version, refused)


def trusting(ca_bundle: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """A context that trusts the system's authorities, and those of the file."""
    context = ssl.create_default_context()
    if ca_bundle is not None:
        context.load_verify_locations(ca_bundle)
    return context


def _handshake(
    context: ssl.SSLContext, host: str, port: int, timeout: float, refused: str
) -> TlsCertificate:
    with _connected(context, host, port, timeout) as connection:
        found: dict[str, Any] = connection.getpeercert() or {}
        version = connection.version() or ""
    names = {name: value for part in found.get("issuer", ()) for name, value in part}
    issuer = ", ".join(names[each] for each in ISSUER_FIELDS if each in names)
    expires = None
    if "notAfter" in found:
        seconds = ssl.cert_time_to_seconds(found["notAfter"])
        expires = datetime.fromtimestamp(seconds, UTC)
    return TlsCertificate(issuer, expires, version, refused)


@contextlib.contextmanager
def _connected(
    context: ssl.SSLContext, host: str, port: int, timeout: float
) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection((host, port), timeout) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        yield connection
