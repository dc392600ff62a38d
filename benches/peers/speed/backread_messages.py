"""backread: every user's messages in one of its shapes.

Usage: ``python backread_messages.py URL batches|arrow|dataclasses|dicts``, or ``... URL stream
ROWS``, which keeps no batch, and prints besides what the process held at most while the first tenth
of the rows came, and while the last tenth did.
"""

import sys
import time
from typing import Any

import pyarrow as pa
from measured import cpu_seconds, measure, memory_megabytes, report

# A client imports it when it is made, and imports are not timed.
import backread.models  # noqa: F401
from backread import Client


def read(url: str, shape: str) -> Any:
    """Reads all."""
    with Client(url, "bench", "bench") as client:
        if shape == "batches":
            # Their rows are counted, and nothing is kept.
            stream = pa.RecordBatchReader.from_stream(client.messages.all())
            return range(sum(batch.num_rows for batch in stream))
        if shape == "arrow":
            return pa.table(client.messages.all())
        return client.messages.all(as_dict=shape == "dicts").to_list()


def stream(url: str, expected: int) -> None:
    """Reads all, batch by batch."""
    began, cpu = time.perf_counter(), cpu_seconds()
    rows = 0
    held: list[tuple[int, float]] = []
    with Client(url, "bench", "bench") as client:
        for batch in pa.RecordBatchReader.from_stream(client.messages.all()):
            rows += batch.num_rows
            held.append((rows, memory_megabytes("VmRSS")))
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    first = max(megabytes for at, megabytes in held if at <= max(expected // 10, held[0][0]))
    last = max(megabytes for at, megabytes in held if at > expected * 9 // 10)
    report(rows, seconds, cpu, first_mb=first, last_mb=last)


if sys.argv[2] == "stream":
    stream(sys.argv[1], int(sys.argv[3]))
else:
    # It imports pandas where that is installed, and imports are left out.
    pa.table({"id": pa.array([], pa.int64())})
    measure(lambda: read(*sys.argv[1:3]))
