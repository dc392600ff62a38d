"""foghttp with msgspec structs."""

from typing import Any

import foghttp
import pages
import structs
from measured import measure


async def main() -> list[Any]:
    """Reads all."""
    url, most = pages.arguments()
    # Its own limits suffice: 100 active requests and 20 idle connections.
    async with foghttp.AsyncClient(base_url=url, headers=pages.HEADERS) as client:

        async def fetch(path: str) -> bytes:
            response = await client.get(path)
            response.raise_for_status()
            return response.content

        return await pages.read(fetch, structs.users, structs.messages, most, structs.id_of)


measure(lambda: pages.run(main()))
