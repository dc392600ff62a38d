"""Lands rows from many workers in immutable Parquet files, which manifests combine into runs.

`begin` writes a plan into a folder, `land` reads one shard into a new file, on any machine and any
number of times, and `commit` picks one file per shard. A run does not exist before its commit and
never changes after it, unless `Mirror.forget` removes a user. `runs` returns the committed runs in
commit order, `dataset` the rows of one.

A folder is a path, or a URI that pyarrow knows (``s3://``, ``gs://``, ``hdfs://``). Its layout::

    run=<plan_id>/plan.json
    run=<plan_id>/shard=00003/shard.json
    run=<plan_id>/shard=00003/attempt=<random>.parquet
    manifests/00000001.json

Files that no manifest names are ignored; workers that were killed or overtaken by another attempt
leave them. Requires pyarrow: ``pip install pyarrow``.
"""

from backread.landing.landed import Landed, commit, land
from backread.landing.manifest import Committed, begin, dataset, load_plan, load_shard, runs

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
