"""backread: every user's messages as a stream of Arrow batches, none of which is kept.

Usage: ``python backread_stream.py URL ROWS``. Prints besides what the process held at most while
the first tenth of the rows came, and while the last tenth did.
"""

import sys
import time

import pyarrow as pa
from measured import cpu_seconds, memory_megabytes, report

# A client imports it when it is made, and imports are not timed.
import backread.models  # noqa: F401
from backread import Client


def main(url: str, expected: int) -> None:
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


main(sys.argv[1], int(sys.argv[2]))
