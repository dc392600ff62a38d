"""wreq with msgspec structs; with ``untracked``, out of the sight of the garbage collector."""

import asyncio

import structs
import wreq_pages
from measured import measure

measure(lambda: asyncio.run(wreq_pages.read(structs)))
