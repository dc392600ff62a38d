"""Which proxy of the environment the client uses.

These are the rules of ``src/core/wire/environment.rs`` and of reqwest's ``NoProxy``. Those of
urllib, requests and curl differ.
"""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import SplitResult

__all__ = [
    "PORTS",
    "is_address",
    "is_for_http_alone",
    "is_loopback",
    "proxy_of_environment",
    "spelled_twice",
]

PORTS = {"http": 80, "https": 443}


def proxy_of_environment(url: SplitResult) -> tuple[str, str]:
    """The proxy's address and the variable that names it; both are empty if there is none."""
    host = url.hostname or ""
    exempt = os.environ.get("NO_PROXY", os.environ.get("no_proxy", "")).lower().split(",")
    if is_loopback(host) or any(_exempts(entry.strip(), host) for entry in exempt):
        return "", ""
    for name in _proxy_variables(url):
        for spelling in (name, name.lower()):
            if value := os.environ.get(spelling):
                return value, spelling
    return "", ""


def spelled_twice(url: SplitResult) -> list[str]:
    """The variables whose lower case has another value, which other programs prefer."""
    return [
        name
        for name in (*_proxy_variables(url), "NO_PROXY")
        if (value := os.environ.get(name)) and os.environ.get(name.lower(), value) != value
    ]


def is_for_http_alone(url: SplitResult) -> bool:
    """Whether the environment has a proxy that would be used if this service were not https."""
    return url.scheme == "https" and proxy_of_environment(url._replace(scheme="http"))[0] != ""


def is_loopback(host: str) -> bool:
    """Whether it is this machine, which is reached without the environment's proxies."""
    if is_address(host):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def is_address(host: str) -> bool:
    """Whether it is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _proxy_variables(url: SplitResult) -> tuple[str, str]:
    return f"{url.scheme.upper()}_PROXY", "ALL_PROXY"


def _exempts(entry: str, host: str) -> bool:
    """Whether an entry of ``NO_PROXY`` names the host."""
    if not is_address(host):
        domain = entry.removeprefix(".")
        return entry == "*" or domain == host or (domain != "" and host.endswith(f".{domain}"))
    _, slash, prefix = entry.partition("/")
    try:
        # Python would read a netmask as well.
        return (not slash or prefix.isdecimal()) and (
            ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        )
    except ValueError:
        return False
