"""A peer on asyncio: every user's messages, fetched by a library and decoded into a kind of rows.

Usage: ``python readers.py URL USERS LIBRARY structs|dicts|table [FLAG...]``. The structs are
msgspec's, the dictionaries orjson's; a table is pyarrow's (see tables.py). The flags are those of
pages.py, measured.py and structs.py.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pages
from measured import measure

Fetching = Callable[[str], AbstractAsyncContextManager[pages.Fetch]]


# Each imports its library, which is not timed, and returns what opens a client of a URL.
def wreq() -> Fetching:
    """wreq."""
    from wreq import Client

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[pages.Fetch]:
        async with Client(headers=pages.HEADERS) as client:

            async def fetch(path: str) -> Any:
                response = await client.get(url + path)
                response.raise_for_status()
                return await response.bytes()

            yield fetch

    return opened


def aiohttp() -> Fetching:
    """aiohttp."""
    from aiohttp import ClientSession, TCPConnector

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[pages.Fetch]:
        connector = TCPConnector(limit=pages.IN_FLIGHT)
        options = {"headers": pages.HEADERS, "connector": connector, "raise_for_status": True}
        async with ClientSession(url, **options) as session:

            async def fetch(path: str) -> bytes:
                async with session.get(path) as response:
                    return await response.read()

            yield fetch

    return opened


def foghttp() -> Fetching:
    """foghttp, whose own limits suffice: 100 active requests and 20 idle connections."""
    from foghttp import AsyncClient

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[pages.Fetch]:
        async with AsyncClient(base_url=url, headers=pages.HEADERS) as client:

            async def fetch(path: str) -> bytes:
                response = await client.get(path)
                response.raise_for_status()
                return response.content

            yield fetch

    return opened


def primp() -> Fetching:
    """primp."""
    from primp import AsyncClient

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[pages.Fetch]:
        async with AsyncClient(headers=pages.HEADERS) as client:

            async def fetch(path: str) -> bytes:
                response = await client.get(url + path)
                response.raise_for_status()
                return response.content

            yield fetch

    return opened


def pyqwest() -> Fetching:
    """pyqwest, whose transport keeps two idle connections unless told otherwise."""
    from pyqwest import Client, HTTPTransport

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[pages.Fetch]:
        transport = HTTPTransport(pool_max_idle_per_host=pages.IN_FLIGHT, enable_otel=False)
        async with transport as wire:
            client = Client(wire)

            async def fetch(path: str) -> bytes:
                # A client has no default headers.
                response = await client.get(url + path, headers=pages.HEADERS)
                if response.status != 200:
                    raise RuntimeError(f"status {response.status}")
                return response.content

            yield fetch

    return opened


def pyreqwest() -> Fetching:
    """pyreqwest."""
    from pyreqwest.client import ClientBuilder

    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[pages.Fetch]:
        builder = ClientBuilder().base_url(url).default_headers(pages.HEADERS).error_for_status()
        async with builder.build() as client:

            async def fetch(path: str) -> Any:
                response = await client.get(path).build().send()
                return await response.bytes()

            yield fetch

    return opened


LIBRARIES = (wreq, aiohttp, foghttp, primp, pyqwest, pyreqwest)


async def read(opened: Fetching, decoders: Any) -> list[Any]:
    """All messages, decoded by one of the modules that decode."""
    url, most = pages.arguments()
    async with opened(url) as fetch:
        return await pages.read(fetch, decoders.users, decoders.messages, most, decoders.id_of)


def main(library: str, kind: str) -> None:
    """Reads, and prints what that took."""
    opened = {each.__name__: each for each in LIBRARIES}[library]()
    if kind != "table":
        decoders = importlib.import_module(kind)
        measure(lambda: pages.run(read(opened, decoders)))
        return
    import tables

    # wreq gives its bytes to pyarrow's reader of JSON, which is the fastest way to a table.
    decoders, table = tables.OF_BYTES if library == "wreq" else tables.OF_DICTS
    measure(lambda: table(pages.run(read(opened, decoders))))


if __name__ == "__main__":
    main(*sys.argv[3:5])
