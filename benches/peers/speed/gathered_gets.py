"""64 users fetched at once with `asyncio.gather`, over and over.

Usage: ``python gathered_gets.py URL LIBRARY [uvloop]``. backread gives a `User`, the others a
dictionary.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pages
from measured import cpu_seconds

AT_ONCE = 64
WARM_UP = 5
TIMES = 60
USERS = range(1_000_001, 1_000_001 + AT_ONCE)

Get = Callable[[int], Awaitable[Any]]


@asynccontextmanager
async def wreq(url: str) -> Any:
    """wreq."""
    from wreq import Client

    async with Client(headers=pages.HEADERS) as client:

        async def get(user: int) -> Any:
            response = await client.get(f"{url}/external/users/{user}")
            response.raise_for_status()
            return await response.json()

        yield get


@asynccontextmanager
async def pyreqwest(url: str) -> Any:
    """pyreqwest."""
    from pyreqwest.client import ClientBuilder

    builder = ClientBuilder().base_url(url).default_headers(pages.HEADERS).error_for_status()
    async with builder.build() as client:

        async def get(user: int) -> Any:
            response = await client.get(f"/external/users/{user}").build().send()
            return await response.json()

        yield get


@asynccontextmanager
async def primp(url: str) -> Any:
    """primp."""
    from primp import AsyncClient

    async with AsyncClient(headers=pages.HEADERS) as client:

        async def get(user: int) -> Any:
            response = await client.get(f"{url}/external/users/{user}")
            response.raise_for_status()
            return response.json()

        yield get


@asynccontextmanager
async def pyqwest(url: str) -> Any:
    """pyqwest, with as many idle connections as there are calls."""
    from pyqwest import Client, HTTPTransport

    async with HTTPTransport(pool_max_idle_per_host=AT_ONCE, enable_otel=False) as wire:
        client = Client(wire)

        async def get(user: int) -> Any:
            path = f"{url}/external/users/{user}"
            response = await client.get(path, headers=pages.HEADERS)
            if response.status != 200:
                raise RuntimeError(f"status {response.status}")
            return response.json()

        yield get


@asynccontextmanager
async def foghttp(url: str) -> Any:
    """foghttp, with as many idle connections as there are calls."""
    from foghttp import AsyncClient, Limits

    limits = Limits(max_idle_connections_per_host=AT_ONCE)
    async with AsyncClient(base_url=url, headers=pages.HEADERS, limits=limits) as client:

        async def get(user: int) -> Any:
            response = await client.get(f"/external/users/{user}")
            response.raise_for_status()
            return response.json()

        yield get


@asynccontextmanager
async def aiohttp(url: str) -> Any:
    """aiohttp."""
    import aiohttp

    options = {"headers": pages.HEADERS, "raise_for_status": True}
    async with aiohttp.ClientSession(url, **options) as session:

        async def get(user: int) -> Any:
            async with session.get(f"/external/users/{user}") as response:
                return await response.json()

        yield get


@asynccontextmanager
async def backread(url: str) -> Any:
    """backread as it is."""
    from backread import AsyncClient

    async with AsyncClient(url, "bench", "bench") as client:
        yield client.users.get


@asynccontextmanager
async def backread_64(url: str) -> Any:
    """backread with as many requests in flight as there are calls."""
    from backread import AsyncClient

    async with AsyncClient(url, "bench", "bench", max_concurrency=AT_ONCE) as client:
        yield client.users.get


async def main(url: str, library: str) -> None:
    """Calls, and prints the calls a second and the CPU time of a call in microseconds."""
    async with globals()[library](url) as get:

        async def calls(times: int) -> None:
            for _ in range(times):
                await asyncio.gather(*(get(user) for user in USERS))

        await calls(WARM_UP)
        began, cpu = time.perf_counter(), cpu_seconds()
        await calls(TIMES)
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    made = TIMES * AT_ONCE
    print(json.dumps({"calls_a_second": made / seconds, "cpu": cpu / made * 1e6}))


if __name__ == "__main__":
    pages.run(main(*sys.argv[1:3]))
