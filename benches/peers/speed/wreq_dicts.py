"""wreq with the dictionaries of orjson."""

import asyncio

import dicts
import wreq_pages
from measured import measure

measure(lambda: asyncio.run(wreq_pages.read(dicts)))
