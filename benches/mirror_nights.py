"""A mirror that is filled in nights of a few requests each, next to one that is filled in one run.

Printed is a line for each night and the ratio of the requests. Ends with 1 if it is more than
``--most``, if a night shows readers nothing new, or if the two mirrors differ in the end.

Usage: ``python benches/mirror_nights.py [--users 3000] [--requests 200]``
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from backread import Mirror
from backread.testing import MockServer, World

CONTENT = "SELECT COLUMNS(* EXCLUDE (first_seen_at, last_seen_at, changed_at)) FROM {} ORDER BY ALL"


def content(mirror: Mirror) -> list[list[tuple[Any, ...]]]:
    """All rows, without the times of the commits."""
    return [mirror.sql(CONTENT.format(table)).fetchall() for table in ("users", "messages")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=3_000)
    parser.add_argument("--longest", type=int, default=120)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--most", type=float, default=1.05)
    given = parser.parse_args()
    world = World(seed=1, users=given.users, messages_per_user=(0, given.longest))
    with (
        tempfile.TemporaryDirectory() as directory,
        MockServer(world) as server,
        server.client() as client,
    ):
        whole, nightly = Mirror(Path(directory, "whole")), Mirror(Path(directory, "nightly"))
        one = whole.sync(client)
        night, rows, seen_more = 0, 0, True
        while True:
            night += 1
            report = nightly.sync(client, max_requests=given.requests)
            before, rows = rows, nightly.table("messages").num_rows
            seen_more = seen_more and (rows > before or not report.partial)
            print(f"night {night}: {report.requests:,} requests, {rows:,} messages", flush=True)
            if not report.partial:
                break
        same = content(whole) == content(nightly)
    ratio = report.requests / one.requests
    print(f"users {world.total_users:,}, messages {world.total_messages:,}, nights {night}")
    print(f"requests of one run {one.requests:,}, of all nights {report.requests:,}")
    print(f"ratio {ratio:.3f} (at most {given.most})")
    print(f"each night showed more: {'yes' if seen_more else 'NO'}")
    print(f"the same rows in the end: {'yes' if same else 'NO'}")
    return 0 if same and seen_more and ratio <= given.most else 1


if __name__ == "__main__":
    sys.exit(main())
