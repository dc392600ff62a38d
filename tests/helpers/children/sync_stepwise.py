"""One sync in a process of its own, stopped at each commit until the parent says to go on.

Usage: ``python sync_stepwise.py FOLDER MODE``, the service in the environment. It writes one line
of JSON for each progress (phase, users, messages, requests of the run), then waits for a line on
stdin.
"""

import json
import sys

from backread import Client, Mirror
from backread.mirror import SyncProgress


def tell(now: SyncProgress) -> None:
    print(json.dumps([now.phase, now.users, now.messages, now.run_requests]), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    with Client() as client:
        Mirror(sys.argv[1]).sync(client, mode=sys.argv[2], on_progress=tell)  # type: ignore[arg-type]
