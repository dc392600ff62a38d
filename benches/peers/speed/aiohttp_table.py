"""aiohttp with orjson and pyarrow: one table of all messages, with timestamps as such."""

import asyncio

import aiohttp_pages
import dicts
import pyarrow as pa
from measured import measure
from message_schema import AS_SENT, TYPED


def table() -> pa.Table:
    """Reads all."""
    rows = asyncio.run(aiohttp_pages.read(dicts))
    return pa.Table.from_pylist(rows, schema=AS_SENT).cast(TYPED)


measure(table)
