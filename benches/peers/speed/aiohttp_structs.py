"""aiohttp with msgspec structs."""

import aiohttp_pages
import pages
import structs
from measured import measure

measure(lambda: pages.run(aiohttp_pages.read(structs)))
