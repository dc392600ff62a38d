"""Checks the way to the service, its answer, and its clock."""

from __future__ import annotations

import os
import socket
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address, ip_network
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, urlsplit

from backread._client.client import Client
from backread._client.services import is_loopback
from backread._display.words import amount, duration
from backread.cli.doctor.findings import Findings
from backread.cli.exits import SERVICE, USAGE, exit_code
from backread.errors import AuthenticationError, BackreadError, DecodeError, StatusError

PORTS = {"http": 80, "https": 443}

RENEW_WITHIN = 14
"""Days before a TLS certificate expires."""

WRONG_SETTING = (404, 406)
"""The status codes that a wrong path in base_url and a wrong vendor get."""

NO_USER = 0
"""An id that no service is known to use: the answer is a 404, whose headers can be read."""

CLOCKS_DIFFER = 15.0
"""Seconds that the Date of an answer may be off, since the request takes some of them."""


def check_connection(findings: Findings, client: Client, proxy: str | None, timeout: float) -> bool:
    """Whether the service or its proxy can be connected to; no request is sent.

    ``proxy`` is the option; None if the environment decides.
    """
    findings.begin("reachable")
    first, source = urlsplit(client.base_url), "proxy"
    advice = "check base_url, DNS, VPN and firewalls; if a proxy is needed, set HTTPS_PROXY"
    if proxy is None:
        proxy, source = proxy_of_environment(first)
    place = first.netloc
    if proxy:
        # Without the password, which may have characters that split an address elsewhere.
        address = proxy.rpartition("@")[2].rpartition("://")[2]
        scheme = "https" if proxy.lower().startswith("https:") else "http"
        first, advice = urlsplit(f"{scheme}://{address}"), f"check the proxy's address in {source}"
        place = f"the proxy {first.netloc} ({source})"
    way, began = (first.hostname or "", first.port or PORTS[first.scheme]), monotonic()
    try:
        with socket.create_connection(way, timeout) as connection:
            took = duration(monotonic() - began)
            findings.ok(f"connected to {place} in {took}, at {connection.getpeername()[0]}")
            if first.scheme == "https":
                _check_tls(findings, client, connection, way[0])
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", "") or error
        findings.problem(f"{place} cannot be connected to: {why}", advice, SERVICE)
        return False
    return True


def _check_tls(findings: Findings, client: Client, connection: socket.socket, host: str) -> None:
    """Shows the TLS certificate. The client's request has the last word on it, and on TLS."""
    context, ca_bundle = ssl.create_default_context(), client._options["ca_bundle"]
    try:
        if ca_bundle is not None:
            context.load_verify_locations(ca_bundle)
        with context.wrap_socket(connection, server_hostname=host) as secure:
            found: dict[str, Any] = secure.getpeercert() or {}
    except OSError as error:
        why = getattr(error, "verify_message", "") or error
        findings.warning(f"TLS fails: {why}", "if the service's error is below, it says what to do")
        return
    expires = datetime.fromtimestamp(ssl.cert_time_to_seconds(found["notAfter"]), UTC)
    issuer = ", ".join(value for part in found["issuer"] for _, value in part)
    text = f"the TLS certificate is trusted, issued by {issuer}, valid until {expires:%Y-%m-%d}"
    if (expires - datetime.now(UTC)).days < RENEW_WITHIN:
        findings.warning(text, "it expires soon: tell the service's operators, if they do not know")
    else:
        findings.ok(text)


def check_service(findings: Findings, client: Client) -> None:
    """Requests one user, and compares this machine's clock with the Date of an answer."""
    findings.begin("service")
    page, began = None, monotonic()
    try:
        page = client.users.page(limit=1)
        users = "" if page.total is None else f": it has {amount(page.total, 'user')}"
        findings.ok(f"the service answered in {duration(monotonic() - began)}{users}")
        client.users.get(NO_USER)
    except BackreadError as error:
        status = error.status_code if isinstance(error, StatusError) else 0
        if page is None:
            code = USAGE if status in WRONG_SETTING else exit_code(error)
            findings.problem(str(error), _advice(error), code)
        if isinstance(error, StatusError):
            _check_clock(findings, error.headers.get("date", ""))


def _advice(error: BackreadError) -> str:
    """What to do, where the error's text does not say it."""
    if isinstance(error, AuthenticationError):
        return (
            "copy the API Secret Key again, from the page Integration (General) of the service's "
            "console; a file with it must hold nothing else"
        )
    body = error.body.decode("utf-8", "replace") if isinstance(error, StatusError) else ""
    if (error.snippet if isinstance(error, DecodeError) else body).lstrip().startswith("<"):
        return (
            "the answer is a web page: something in front of the service may have sent it, such as "
            "a proxy, a firewall, or a network that wants a login (open any page in a browser)"
        )
    return ""


def _check_clock(findings: Findings, date: str) -> None:
    findings.begin("clock")
    try:
        there = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        findings.ok("the service's answer has no valid Date, so the clocks were not compared")
        return
    ahead = (datetime.now(UTC) - there.replace(tzinfo=there.tzinfo or UTC)).total_seconds()
    if abs(ahead) <= CLOCKS_DIFFER:
        findings.ok("this machine's clock agrees with the service's, to a few seconds")
        return
    text = f"this machine's clock is {abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'}"
    advice = "set it by NTP; a wrong one breaks TLS, and misreads waits that are given as a date"
    findings.warning(f"{text} the service's", advice)


def proxy_of_environment(url: SplitResult) -> tuple[str, str]:
    """The proxy's address and the variable that names it; both are empty if there is none.

    By the rules of ``src/core/wire/setup.rs`` and of reqwest's ``NoProxy``; those of urllib,
    requests and curl differ.
    """
    host = url.hostname or ""
    exempt = os.environ.get("NO_PROXY", os.environ.get("no_proxy", "")).lower().split(",")
    if is_loopback(host) or any(_exempts(entry.strip(), host) for entry in exempt):
        return "", ""
    for name in (f"{url.scheme.upper()}_PROXY", "ALL_PROXY"):
        for spelling in (name, name.lower()):
            if value := os.environ.get(spelling):
                return value, spelling
    return "", ""


def _exempts(entry: str, host: str) -> bool:
    """Whether an entry of ``NO_PROXY`` names the host."""
    try:
        address = ip_address(host)
    except ValueError:
        domain = entry.removeprefix(".")
        return entry == "*" or (domain != "" and f".{host}".endswith(f".{domain}"))
    try:
        # Python would read a netmask as well.
        return "." not in entry.partition("/")[2] and address in ip_network(entry, strict=False)
    except ValueError:
        return False
