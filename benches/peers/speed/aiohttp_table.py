"""aiohttp with orjson and pyarrow: one table of all messages, with timestamps as such."""

import asyncio

import aiohttp_pages
import dicts
import pyarrow as pa
from measured import measure

SENDER = [("id", pa.int64())] + [
    (name, pa.string()) for name in ("name", "email", "forename", "surname", "picture_thumb_url")
]
FIELDS = [
    ("id", pa.int64()),
    ("body", pa.string()),
    ("read_by_user", pa.bool_()),
    ("read_by_operator", pa.bool_()),
    ("created_at", pa.string()),
    ("file_url", pa.string()),
    ("auto_invitation", pa.bool_()),
    ("sender_type", pa.string()),
    ("sender", pa.struct(SENDER)),
]
SCHEMA = pa.schema(FIELDS)
PLACE = SCHEMA.get_field_index("created_at")
TIMESTAMP = pa.field("created_at", pa.timestamp("us", "UTC"))
TYPED = SCHEMA.set(PLACE, TIMESTAMP)


def table() -> pa.Table:
    """Reads all."""
    rows = asyncio.run(aiohttp_pages.read(dicts))
    return pa.Table.from_pylist(rows, schema=SCHEMA).cast(TYPED)


measure(table)
