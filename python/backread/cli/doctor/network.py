"""Checks the way to the service: the name, the connection, the proxy, the TLS certificate."""

from __future__ import annotations

import os
import re
import socket
from base64 import b64encode
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from backread._display.words import duration
from backread.cli.doctor.findings import Findings
from backread.cli.doctor.proxies import (
    PORTS,
    is_address,
    is_for_http_alone,
    is_loopback,
    proxy_of_environment,
    spelled_twice,
)
from backread.cli.doctor.tls import look_at_certificate, trusting
from backread.cli.exits import SERVICE

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["check_network"]

MOST_ADDRESSES = 3
RENEW_WITHIN = 14
"""Days."""


def check_network(findings: Findings, client: Client, proxy: str | None, timeout: float) -> bool:
    """Whether a connection can be made; the service is sent nothing.

    ``proxy`` is the option; None if the environment decides.
    """
    findings.begin("reachable")
    url = urlsplit(client.base_url)
    host, port = url.hostname or "", url.port or PORTS[url.scheme]
    ca_bundle = client._options["ca_bundle"]
    source = "proxy"
    if proxy is None:
        _check_spelling(findings, url)
        proxy, source = proxy_of_environment(url)
    if proxy:
        # As is customary, an address without a scheme is an http one.
        try:
            through = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
            way = through.hostname or "", through.port or PORTS[through.scheme]
        except ValueError:
            # The client, which reads addresses otherwise, has accepted it.
            findings.ok(f"requests go through a proxy ({source})")
            return True
        findings.ok(f"requests go through the proxy {_address(*way)} ({source})")
        if not _connects(findings, *way, timeout, f"check the proxy's address in {source}"):
            return False
        if url.scheme == "http":
            return True
        tunnel = HTTPConnection(*way, timeout=timeout)
        if through.scheme == "https":
            tunnel = HTTPSConnection(*way, timeout=timeout, context=trusting(ca_bundle))
        return _opens_tunnel(findings, tunnel, through, source, _address(host, port))
    unused = _unused_proxy(url)
    if not is_address(host) and not _resolves(findings, host, port, unused):
        return False
    advice = f"check base_url, the network and firewalls{unused}"
    if not _connects(findings, host, port, timeout, advice):
        return False
    if url.scheme == "https":
        _check_certificate(findings, ca_bundle, host, port, timeout)
    elif not is_loopback(host):
        findings.warning(
            "base_url is plain http: everyone on the way sees the secret", "use https if you can"
        )
    return True


def _unused_proxy(url: SplitResult) -> str:
    """What to add to the advice if only services of plain http have a proxy."""
    if not is_for_http_alone(url):
        return ""
    return "; HTTP_PROXY is for http:// only: set HTTPS_PROXY if this needs the proxy"


def _check_spelling(findings: Findings, url: SplitResult) -> None:
    for name in [] if is_loopback(url.hostname or "") else spelled_twice(url):
        findings.warning(
            f"{name} and {name.lower()} differ: backread uses {name}, while curl, requests and "
            f"others use {name.lower()}",
            "set both to the same value, or leave one out",
        )


def _opens_tunnel(
    findings: Findings, proxy: HTTPConnection, url: SplitResult, source: str, target: str
) -> bool:
    """Whether the proxy connects to the service. Without an answer, the client's error says why."""
    headers = {"Host": target}
    if url.username is not None:
        user = f"{unquote(url.username)}:{unquote(url.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {b64encode(user).decode()}"
    try:
        with closing(proxy):
            proxy.request("CONNECT", target, headers=headers)
            response = proxy.getresponse()
            status = response.status
    except (OSError, HTTPException):
        return True
    if status < 300:
        findings.ok(f"the proxy connects to {target}")
        return True
    if status == 407 and (others := _other_schemes(response)):
        advice = (
            f"it accepts {' or '.join(others)}, and backread knows Basic (RFC 7617): run a relay "
            "such as cntlm or px on this machine, and name that"
        )
    elif status == 407:
        advice = f"give its user name and password in {source}: http://user:password@host:port"
    elif status >= 500:
        advice = "check the host in base_url; if it is right, ask the operators of the proxy"
    else:
        advice = "ask the operators of the proxy to allow this host and port"
    findings.problem(f"the proxy answered {status} to CONNECT {target}", advice, SERVICE)
    return False


def _other_schemes(response: HTTPResponse) -> list[str]:
    """The ways in which a proxy wants to be logged in to, if none of them is Basic."""
    # A line may have several, each with parameters (RFC 9110, 11.6.1).
    offered = ",".join(response.headers.get_all("Proxy-Authenticate", [])).split(",")
    schemes = [match[1] for each in offered if (match := re.match(r"\s*([\w-]+)(\s|$)", each))]
    return [] if "basic" in map(str.lower, schemes) else schemes


def _resolves(findings: Findings, host: str, port: int, more_advice: str) -> bool:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        findings.problem(
            f"the name {host} has no address: {why}",
            "check base_url and this machine's DNS; a name of a private network may need its VPN"
            f"{more_advice}",
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
    findings: Findings,
    ca_bundle: str | os.PathLike[str] | None,
    host: str,
    port: int,
    timeout: float,
) -> None:
    """Shows the TLS certificate. The client's request has the last word on it, and on TLS."""
    try:
        found = look_at_certificate(host, port, ca_bundle, timeout)
    except OSError as error:
        findings.warning(
            f"the TLS handshake fails: {getattr(error, 'reason', None) or error.strerror or error}",
            "the error of the service, below, says what to do",
        )
        return
    details = f"issued by {found.issuer}" if found.issuer else "of an unreadable issuer"
    if found.expires is not None:
        details += f", valid until {found.expires:%Y-%m-%d %H:%M} UTC"
    if found.refused:
        findings.warning(
            f"the TLS certificate is not trusted: {found.refused.rstrip('.')} ({details})",
            "if a private authority issued it, name that authority's PEM file in --ca-bundle; if "
            "it has expired or is another host's, the service must replace it",
        )
        return
    left = None if found.expires is None else (found.expires - datetime.now(UTC)).days
    if left is not None and left < RENEW_WITHIN:
        findings.warning(
            f"the TLS certificate expires in {left} days ({details})",
            "tell the service's operators, unless it is renewed by itself",
        )
    else:
        findings.ok(f"{found.version}, the TLS certificate is trusted ({details})")


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
