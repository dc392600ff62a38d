"""primp with msgspec structs."""

from typing import Any

import pages
import primp
import structs
from measured import measure


async def main() -> list[Any]:
    """Reads all."""
    url, most = pages.arguments()
    async with primp.AsyncClient(headers=pages.HEADERS) as client:

        async def fetch(path: str) -> bytes:
            response = await client.get(url + path)
            response.raise_for_status()
            return response.content

        return await pages.read(fetch, structs.users, structs.messages, most, structs.id_of)


measure(lambda: pages.run(main()))
