"""pyreqwest with msgspec structs."""

from typing import Any

import pages
import structs
from measured import measure
from pyreqwest.client import ClientBuilder


async def main() -> list[Any]:
    """Reads all."""
    url, most = pages.arguments()
    builder = ClientBuilder().base_url(url).default_headers(pages.HEADERS).error_for_status()
    async with builder.build() as client:

        async def fetch(path: str) -> Any:
            response = await client.get(path).build().send()
            return await response.bytes()

        return await pages.read(fetch, structs.users, structs.messages, most, structs.id_of)


measure(lambda: pages.run(main()))
