"""wreq with msgspec structs; with ``untracked``, out of the sight of the garbage collector."""

import asyncio
from typing import Any

import pages
import structs
from measured import measure
from wreq import Client


async def main() -> list[Any]:
    """Reads all."""
    url, most = pages.arguments()
    async with Client(headers=pages.HEADERS) as client:

        async def fetch(path: str) -> Any:
            response = await client.get(url + path)
            response.raise_for_status()
            return await response.bytes()

        return await pages.read(fetch, structs.users, structs.messages, most, structs.id_of)


measure(lambda: asyncio.run(main()))
