"""Lands every message by Ray's workers: ``python with_ray.py FOLDER``, on a folder that all see.

The service comes from BACKREAD_BASE_URL, BACKREAD_API_SECRET and BACKREAD_VENDOR; each node needs
the secret in its environment. Needs ``pip install ray pyarrow``.
"""

import sys

import ray

from backread import Client, landing, plan


def main(folder: str) -> None:
    # Two processors of this machine; ray.init(address="auto") takes your cluster's.
    ray.init(num_cpus=2, include_dashboard=False)
    land = ray.remote(landing.land)
    with Client() as client:
        shards = plan(client, shards=8, workers=2)
    run = landing.begin(folder, shards)
    landed = ray.get([land.remote(folder, shard) for shard in shards])
    committed = landing.commit(folder, run, landed)
    print(f"{committed.rows} messages in {len(committed.files)} files")
    print(f"certificate: {committed.report.certificate}")
    ray.shutdown()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/many-workers/with_ray.py FOLDER")
    main(sys.argv[1])
