"""Lands every message by processes of this machine: ``python processes.py FOLDER``.

The service comes from BACKREAD_BASE_URL, BACKREAD_API_SECRET and BACKREAD_VENDOR. Needs pyarrow.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from backread import Client, landing, plan

WORKERS = 4


def main(folder: str) -> None:
    with Client() as client:
        shards = plan(client, shards=8, workers=WORKERS)
    run = landing.begin(folder, shards)
    with ProcessPoolExecutor(WORKERS) as pool:
        committed = landing.commit(folder, run, pool.map(partial(landing.land, folder), shards))
    print(f"{committed.rows} messages in {len(committed.files)} files")
    print(f"certificate: {committed.report.certificate}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/many-workers/processes.py FOLDER")
    main(sys.argv[1])
