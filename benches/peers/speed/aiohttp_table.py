"""aiohttp with orjson and pyarrow: one table of all messages, with timestamps as such."""

import aiohttp_pages
import dicts
import pages
import pyarrow as pa
from measured import measure
from message_schema import AS_SENT, TYPED


def table() -> pa.Table:
    """Reads all."""
    rows = pages.run(aiohttp_pages.read(dicts))
    return pa.Table.from_pylist(rows, schema=AS_SENT).cast(TYPED)


measure(table)
