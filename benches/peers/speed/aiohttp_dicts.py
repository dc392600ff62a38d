"""aiohttp with the dictionaries of orjson."""

import asyncio

import aiohttp_pages
import dicts
from measured import measure

measure(lambda: asyncio.run(aiohttp_pages.read(dicts)))
