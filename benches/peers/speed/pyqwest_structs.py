"""pyqwest with msgspec structs."""

from typing import Any

import pages
import structs
from measured import measure
from pyqwest import Client, HTTPTransport


async def main() -> list[Any]:
    """Reads all."""
    url, most = pages.arguments()
    # A client has no default headers, and a transport keeps two idle connections by default.
    async with HTTPTransport(pool_max_idle_per_host=pages.IN_FLIGHT, enable_otel=False) as wire:
        client = Client(wire)

        async def fetch(path: str) -> bytes:
            response = await client.get(url + path, headers=pages.HEADERS)
            if response.status != 200:
                raise RuntimeError(f"status {response.status}")
            return response.content

        return await pages.read(fetch, structs.users, structs.messages, most, structs.id_of)


measure(lambda: pages.run(main()))
