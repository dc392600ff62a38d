"""Rows landed by many workers: immutable Parquet files, and manifests that make runs of them.

`begin` writes a plan into a folder, `land` reads one shard into a file of its own, wherever it runs
and however often, and `commit` names one file for each shard. Until then a run is not there; from
then on it never changes. `runs` gives the committed runs in the order of their commits, `dataset`
the rows of one.

A folder is a path, or a URI that pyarrow knows (``s3://``, ``gs://``, ``hdfs://``). Its layout::

    run=<plan_id>/plan.json
    run=<plan_id>/shard=00003/shard.json
    run=<plan_id>/shard=00003/attempt=<random>.parquet
    manifests/00000001.json

What no manifest names is what a worker left that was killed, or that was slower than another: it
counts for nothing. Needs pyarrow: ``pip install pyarrow``.
"""

from backread.landing.attempt import Landed, land
from backread.landing.manifest import Committed, commit, dataset, runs
from backread.landing.run import begin, load_plan, load_shard

__all__ = [
    "Committed",
    "Landed",
    "begin",
    "commit",
    "dataset",
    "land",
    "load_plan",
    "load_shard",
    "runs",
]
