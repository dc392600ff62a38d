"""Checks the way to the service: the name, the connection, the TLS certificate."""

from __future__ import annotations

import ipaddress
import socket
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from backread._display.words import duration
from backread.cli.doctor.findings import Findings
from backread.cli.doctor.tls import look_at_certificate
from backread.cli.exits import SERVICE

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["check_network"]

PORTS = {"http": 80, "https": 443}
MOST_ADDRESSES = 3
RENEW_WITHIN = 14
"""Days."""


def check_network(findings: Findings, client: Client, timeout: float) -> bool:
    """Whether a connection can be made; nothing is sent."""
    findings.begin("reachable")
    url = urlsplit(client.base_url)
    host, port = url.hostname or "", url.port or PORTS[url.scheme]
    proxy, source = _proxy(client, url)
    if source and proxy is None:
        findings.ok(f"requests go through a proxy with a password, which is not shown ({source})")
        return True
    if proxy is not None:
        findings.ok(f"requests go through the proxy {_address(*proxy)} ({source})")
        return _connects(findings, *proxy, timeout, f"check the proxy's address in {source}")
    if not _is_address(host) and not _resolves(findings, host, port):
        return False
    if not _connects(findings, host, port, timeout, "check base_url, the network and firewalls"):
        return False
    if url.scheme == "https":
        return _check_certificate(findings, client, host, port, timeout)
    if not _is_loopback(host):
        findings.warning(
            "base_url is plain http: everyone on the way sees the secret", "use https if you can"
        )
    return True


def _proxy(client: Client, url: SplitResult) -> tuple[tuple[str, int] | None, str]:
    """The proxy's host and port, and the setting that names it; empty if there is none."""
    given = client._options["proxy"]
    source = "proxy"
    if given is None and not _is_loopback(url.hostname or ""):
        found = getproxies_environment()
        if found and not proxy_bypass(url.netloc.rpartition("@")[2]):
            given = found.get(url.scheme) or found.get("all")
            source = f"{url.scheme.upper()}_PROXY or ALL_PROXY"
    if not given:
        return None, ""
    # As is customary, an address without a scheme is an http one.
    parts = urlsplit(given if "://" in given else f"http://{given}")
    try:
        host, port = parts.hostname, parts.port or PORTS.get(parts.scheme, 80)
    except ValueError:
        return None, source
    return ((host, port) if host else None), source


def _resolves(findings: Findings, host: str, port: int) -> bool:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        findings.problem(
            f"the name {host} has no address: {why}",
            "check base_url and this machine's DNS; a name of a private network may need its VPN",
            SERVICE,
        )
        return False
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    more = f" and {len(addresses) - MOST_ADDRESSES} more" if len(addresses) > 3 else ""
    findings.ok(f"the name {host} is {', '.join(addresses[:MOST_ADDRESSES])}{more}")
    return True


def _connects(findings: Findings, host: str, port: int, timeout: float, advice: str) -> bool:
    began = monotonic()
    try:
        socket.create_connection((host, port), timeout).close()
    except (OSError, UnicodeError) as error:
        if isinstance(error, ConnectionRefusedError):
            why = "nothing listens there"
        elif isinstance(error, TimeoutError):
            why = f"no answer within {duration(timeout)}"
        else:
            why = getattr(error, "strerror", None) or str(error)
        findings.problem(f"{_address(host, port)} cannot be connected to: {why}", advice, SERVICE)
        return False
    findings.ok(f"connected to {_address(host, port)} in {duration(monotonic() - began)}")
    return True


def _check_certificate(
    findings: Findings, client: Client, host: str, port: int, timeout: float
) -> bool:
    """Whether a handshake is possible. The client has the last word on who is trusted."""
    try:
        found = look_at_certificate(host, port, client._options["ca_bundle"], timeout)
    except OSError as error:
        findings.problem(
            f"the TLS handshake fails: {getattr(error, 'reason', None) or error.strerror or error}",
            "check the scheme and the port of base_url",
            SERVICE,
        )
        return False
    details = f"issued by {found.issuer}" if found.issuer else "of an unreadable issuer"
    if found.expires is not None:
        details += f", valid until {found.expires:%Y-%m-%d %H:%M} UTC"
    if found.refused:
        findings.warning(
            f"the TLS certificate is not trusted: {found.refused.rstrip('.')} ({details})",
            "if a private authority issued it, name that authority's PEM file in --ca-bundle; if "
            "it has expired or is another host's, the service must replace it",
        )
        return True
    left = None if found.expires is None else (found.expires - datetime.now(UTC)).days
    if left is not None and left < RENEW_WITHIN:
        findings.warning(
            f"the TLS certificate expires in {left} days ({details})",
            "tell the service's operators, unless it is renewed by itself",
        )
    else:
        findings.ok(f"{found.version}, the TLS certificate is trusted ({details})")
    return True


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
