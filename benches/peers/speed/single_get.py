"""One user fetched over and over on one connection, one call after another.

Usage: ``python single_get.py URL LIBRARY``. Each library gives what its own method gives: backread
a `User` (or, as ``backread_dict``, a dictionary), the others a dictionary.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pages
from measured import cpu_seconds

USER = 1_000_042
PATH = f"/external/users/{USER}"
WARM_UP = 200
CALLS = 2_000

Get = Callable[[], Any]


def wreq(url: str) -> Get:
    """wreq, blocking."""
    from wreq.blocking import Client

    client = Client(headers=pages.HEADERS)

    def get() -> Any:
        response = client.get(url + PATH)
        response.raise_for_status()
        return response.json()

    return get


def primp(url: str) -> Get:
    """primp, blocking."""
    import primp

    client = primp.Client(headers=pages.HEADERS)

    def get() -> Any:
        response = client.get(url + PATH)
        response.raise_for_status()
        return response.json()

    return get


def pyreqwest(url: str) -> Get:
    """pyreqwest, blocking."""
    from pyreqwest.client import SyncClientBuilder

    builder = SyncClientBuilder().base_url(url).default_headers(pages.HEADERS).error_for_status()
    client = builder.build()
    return lambda: client.get(PATH).build().send().json()


def pyqwest(url: str) -> Get:
    """pyqwest, blocking."""
    from pyqwest import SyncClient, SyncHTTPTransport

    client = SyncClient(SyncHTTPTransport(enable_otel=False))

    def get() -> Any:
        response = client.get(url + PATH, headers=pages.HEADERS)
        if response.status != 200:
            raise RuntimeError(f"status {response.status}")
        return response.json()

    return get


def foghttp(url: str) -> Get:
    """foghttp, blocking."""
    import foghttp

    client = foghttp.Client(base_url=url, headers=pages.HEADERS)

    def get() -> Any:
        response = client.get(PATH)
        response.raise_for_status()
        return response.json()

    return get


def http_client(url: str) -> Get:
    """The standard library's, with orjson."""
    from http.client import HTTPConnection

    import orjson

    connection = HTTPConnection(urlsplit(url).netloc)

    def get() -> Any:
        connection.request("GET", PATH, headers=pages.HEADERS)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(f"status {response.status}")
        return orjson.loads(body)

    return get


def urllib3(url: str) -> Get:
    """urllib3."""
    import urllib3

    pool = urllib3.PoolManager(headers=pages.HEADERS)

    def get() -> Any:
        response = pool.request("GET", url + PATH)
        if response.status != 200:
            raise RuntimeError(f"status {response.status}")
        return response.json()

    return get


def httpx(url: str) -> Get:
    """httpx."""
    import httpx

    client = httpx.Client(base_url=url, headers=pages.HEADERS)
    return lambda: client.get(PATH).raise_for_status().json()


def requests(url: str) -> Get:
    """requests."""
    import requests

    session = requests.Session()
    session.headers.update(pages.HEADERS)

    def get() -> Any:
        response = session.get(url + PATH, timeout=30)
        response.raise_for_status()
        return response.json()

    return get


def backread(url: str) -> Get:
    """backread, typed."""
    from backread import Client

    users = Client(url, "bench", "bench").users
    return lambda: users.get(USER)


def backread_dict(url: str) -> Get:
    """backread, as the service sent it."""
    from backread import Client

    users = Client(url, "bench", "bench").users
    return lambda: users.get(USER, as_dict=True)


def main(url: str, library: str) -> None:
    """Calls, and prints the median of a call and the CPU time of a call, in microseconds."""
    get: Get = globals()[library](url)
    for _ in range(WARM_UP):
        user = get()
    assert (user["id"] if isinstance(user, dict) else user.id) == USER
    times = []
    cpu = cpu_seconds()
    for _ in range(CALLS):
        began = time.perf_counter_ns()
        get()
        times.append(time.perf_counter_ns() - began)
    cpu = cpu_seconds() - cpu
    print(json.dumps({"p50": statistics.median(times) / 1_000, "cpu": cpu / CALLS * 1e6}))


if __name__ == "__main__":
    main(*sys.argv[1:])
