"""What the readers on wreq share."""

from typing import Any

import pages
from wreq import Client


async def read(decoders: Any) -> list[Any]:
    """All messages, decoded by one of the modules that decode."""
    url, most = pages.arguments()
    async with Client(headers=pages.HEADERS) as client:

        async def fetch(path: str) -> Any:
            response = await client.get(url + path)
            response.raise_for_status()
            return await response.bytes()

        return await pages.read(fetch, decoders.users, decoders.messages, most, decoders.id_of)
