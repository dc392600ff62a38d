"""Lands every message by Dask's workers: ``python with_dask.py FOLDER``, on a folder that all see.

The service comes from BACKREAD_BASE_URL, BACKREAD_API_SECRET and BACKREAD_VENDOR; each worker needs
the secret in its environment. Needs ``pip install distributed pyarrow``.
"""

import sys
from functools import partial

from dask.distributed import Client as Cluster

from backread import Client, landing, plan


def main(folder: str) -> None:
    # Two workers of this machine; Cluster("tcp://scheduler:8786") takes yours.
    with Cluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client() as client:
            shards = plan(client, shards=8, workers=2)
        run = landing.begin(folder, shards)
        landed = cluster.gather(cluster.map(partial(landing.land, folder), shards))
        committed = landing.commit(folder, run, landed)
    print(f"{committed.rows} messages in {len(committed.files)} files")
    print(f"certificate: {committed.report.certificate}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/many-workers/with_dask.py FOLDER")
    main(sys.argv[1])
