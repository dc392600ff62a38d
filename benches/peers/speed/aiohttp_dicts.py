"""aiohttp with the dictionaries of orjson."""

import aiohttp_pages
import dicts
import pages
from measured import measure

measure(lambda: pages.run(aiohttp_pages.read(dicts)))
