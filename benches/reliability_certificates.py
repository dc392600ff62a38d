"""Certificates for localhost of an unknown authority, made by openssl."""

from __future__ import annotations

import ssl
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path

SETTINGS = """
[req]
string_mask = pkix
distinguished_name = name
[name]
[extensions]
subjectAltName = DNS:localhost
basicConstraints = critical, CA:FALSE
authorityKeyIdentifier = none
"""
KEY = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
AUTHORITY = "basicConstraints=critical,CA:TRUE"
KNOWN = "/C=US/O=Internet Security Research Group/CN=ISRG Root X1"
"""A root that all bundles have."""


class Certificate:
    """A certificate and its key; it names itself as its issuer, or another that did not sign it."""

    def __init__(self, issuer: str = "/CN=reliability bench") -> None:
        self._issuer = issuer

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        """Where the files are, once they are made."""
        folder = tempfile.TemporaryDirectory()
        Path(folder.name, "settings").write_text(SETTINGS, encoding="ascii")
        issuer = f"{KEY} -config settings -days 2 -x509 -out issuer.pem -keyout issuer.key"
        request = f"{KEY} -config settings -subj /CN=localhost -out request.pem -keyout key.pem"
        signed = "-req -in request.pem -CA issuer.pem -CAkey issuer.key -CAcreateserial -days 2"
        signed += " -extfile settings -extensions extensions -out certificate.pem"
        for command in (
            ["req", *issuer.split(), "-subj", self._issuer, "-addext", AUTHORITY],
            ["req", *request.split()],
            ["x509", *signed.split()],
        ):
            subprocess.run(["openssl", *command], cwd=folder.name, check=True, capture_output=True)
        return folder

    def make(self) -> None:
        """Makes the files, if they are not there."""
        assert self._folder

    @property
    def file(self) -> Path:
        """The issuer's certificate, which whoever trusts the server is given."""
        return Path(self._folder.name, "issuer.pem")

    def context(self) -> ssl.SSLContext:
        """What a server takes."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        folder = Path(self._folder.name)
        context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        return context


OWN = Certificate()
FORGED = Certificate(KNOWN)
