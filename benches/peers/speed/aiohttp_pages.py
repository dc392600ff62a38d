"""What the readers on aiohttp share."""

from typing import Any

import aiohttp
import pages


async def read(decoders: Any) -> list[Any]:
    """All messages, decoded by one of the modules that decode."""
    url, most = pages.arguments()
    connector = aiohttp.TCPConnector(limit=pages.IN_FLIGHT)
    options = {"headers": pages.HEADERS, "connector": connector, "raise_for_status": True}
    async with aiohttp.ClientSession(url, **options) as session:

        async def fetch(path: str) -> bytes:
            async with session.get(path) as response:
                return await response.read()

        return await pages.read(fetch, decoders.users, decoders.messages, most, decoders.id_of)
