"""backread: every user's messages in one of its shapes.

Usage: ``python backread_messages.py URL batches|arrow|dataclasses|dicts``
"""

import sys
from typing import Any

import pyarrow as pa
from measured import measure

# A client imports it when it is made, and imports are not timed.
import backread.models  # noqa: F401
from backread import Client


def main(url: str, shape: str) -> Any:
    """Reads all."""
    with Client(url, "bench", "bench") as client:
        if shape == "batches":
            # Their rows are counted, and nothing is kept.
            stream = pa.RecordBatchReader.from_stream(client.messages.all())
            return range(sum(batch.num_rows for batch in stream))
        if shape == "arrow":
            return pa.table(client.messages.all())
        return client.messages.all(as_dict=shape == "dicts").to_list()


# It imports pandas where that is installed, and imports are left out.
pa.table({"id": pa.array([], pa.int64())})
measure(lambda: main(*sys.argv[1:3]))
