"""wreq with pyarrow's reader of JSON: one table of all messages, with timestamps as such.

The pages become lines, which pyarrow parses at once on several threads.
"""

import io

import page_bytes
import pages
import pyarrow as pa
import pyarrow.compute as pc
import wreq_pages
from measured import measure
from message_schema import TYPED
from pyarrow import json

PAGE = pa.schema([("messages", pa.list_(pa.struct(list(TYPED))))])
PARSED = json.ParseOptions(explicit_schema=PAGE, unexpected_field_behavior="ignore")
READ = json.ReadOptions(block_size=4 << 20)


def table() -> pa.Table:
    """Reads all."""
    lines = io.BytesIO(b"\n".join(pages.run(wreq_pages.read(page_bytes))))
    parsed = json.read_json(lines, read_options=READ, parse_options=PARSED)
    messages = pc.list_flatten(parsed["messages"])
    return pa.Table.from_batches(
        [pa.RecordBatch.from_struct_array(each) for each in messages.chunks]
    )


measure(table)
