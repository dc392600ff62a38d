"""aiohttp with msgspec structs."""

import asyncio

import aiohttp_pages
import structs
from measured import measure

measure(lambda: asyncio.run(aiohttp_pages.read(structs)))
