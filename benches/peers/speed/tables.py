"""One pyarrow table of all messages, of dictionaries or of the bytes of pages."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import dicts
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import structs
from pyarrow import json

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
AS_SENT = pa.schema(FIELDS)
_PLACE = AS_SENT.get_field_index("created_at")
TYPED = AS_SENT.set(_PLACE, pa.field("created_at", pa.timestamp("us", "UTC")))
"""With the timestamp as such."""

PAGE = pa.schema([("messages", pa.list_(pa.struct(list(TYPED))))])
PARSED = json.ParseOptions(explicit_schema=PAGE, unexpected_field_behavior="ignore")
READ = json.ReadOptions(block_size=4 << 20)


class Envelope(msgspec.Struct):
    """What a page says of its list."""

    limit: int
    offset: int
    total: int


_envelope = msgspec.json.Decoder(Envelope)


@dataclass
class Page:
    """As long as its rows are many, but one thing to keep."""

    body: bytes
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[bytes]:
        yield self.body


def messages(body: Any) -> tuple[int, Page]:
    """A page of messages from its bytes."""
    page = _envelope.decode(body)
    return page.total, Page(bytes(body), min(page.limit, page.total - page.offset))


def of_bytes(bodies: list[bytes]) -> pa.Table:
    """The pages become lines, which pyarrow parses at once on several threads."""
    lines = io.BytesIO(b"\n".join(bodies))
    parsed = json.read_json(lines, read_options=READ, parse_options=PARSED)
    messages = pc.list_flatten(parsed["messages"])
    return pa.Table.from_batches(
        [pa.RecordBatch.from_struct_array(each) for each in messages.chunks]
    )


def of_dicts(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows of orjson as a table."""
    return pa.Table.from_pylist(rows, schema=AS_SENT).cast(TYPED)


OF_DICTS = dicts, of_dicts
OF_BYTES = SimpleNamespace(users=structs.users, messages=messages, id_of=structs.id_of), of_bytes
"""What decodes a page, and what makes a table of what it gave."""
