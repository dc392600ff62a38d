"""`land`: the service into immutable files, read by the executors, committed by the driver."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from backread import landing, plan
from backread.errors import (
    AuthenticationError,
    BackreadError,
    ConfigurationError,
    IncompleteError,
    LandingError,
    PermissionDeniedError,
)
from backread.integrations.spark.executors import check as check_executors
from backread.integrations.spark.executors import context, described, slots
from backread.integrations.spark.options import ServiceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]

    from backread import Client, Shard
    from backread.integrations.spark.options import Resource
    from backread.landing import Committed

__all__ = ["land"]

LASTING = (
    AuthenticationError,
    ConfigurationError,
    IncompleteError,
    LandingError,
    PermissionDeniedError,
)
"""What another attempt would end in too."""


def land(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    client: Client | None = None,
    *,
    resource: Resource = "messages",
    shards: int | None = None,
    workers: int | None = None,
    strict: bool = False,
    secret_file: str | os.PathLike[str] | None = None,
    check: bool = True,
) -> Committed:
    """Reads the service into a folder that driver and executors share, as one committed run.

    The driver plans, each shard is a task that writes a file of its own, and the driver commits a
    manifest that names one file for each shard. What a task reads is read again when its executor
    is lost, or when Spark starts it twice; rows are in the run once all the same, for no manifest
    names the other file. Until the commit there is no run, and after it the run never changes.

    - ``folder``: a path, or a URI that pyarrow knows (``s3://``, ``gs://``, ``hdfs://``).
    - ``client``: where the service is and how it is read; ``None`` for ``Client()``. Its
      secret stays on the driver: that of the executors is in ``secret_file``, or else in their
      ``BACKREAD_API_SECRET``.
    - ``resource``, ``shards``, ``strict``: as for `backread.plan`. ``workers``: how many shards are
      read at once, which the client's rate limit is shared out among; ``None`` for as many as the
      session has cores, and for all of them where executors come and go by themselves.
    - ``check=False`` goes without asking the executors first whether they have the secret.

    Gives the run as `backread.landing.runs` does, with its number, its rows and the report on what
    all shards together prove.

    Raises `ConfigurationError` before anything is read where an executor could not read;
    the errors of the client from plan and shards; `LandingError` where the folder cannot be
    written; Spark's own where a task failed for another reason, more often than
    ``spark.task.maxFailures`` allows. Then no run was committed.
    """
    spark_context = context(spark)
    file = None if secret_file is None else os.fspath(secret_file)
    place = os.fspath(folder)
    if "://" not in place:
        place = os.path.abspath(place)  # noqa: PTH100
    if check:
        check_executors(spark, secret_file=file)
    planning = ServiceOptions(secret_file=file).make_client() if client is None else client
    try:
        planned = plan(
            planning,
            resource=resource,
            shards=shards,
            workers=slots(spark) if workers is None else workers,
            strict=strict,
        )
    finally:
        if client is None:
            planning.close()
    run_id = landing.begin(place, planned)
    failures = int(spark_context.getConf().get("spark.task.maxFailures", "4"))
    task = _task(place, strict, file, failures)
    shards_to_land = list(planned)
    with described(spark_context, f"backread: landing {resource}, {len(planned)} shards"):
        results = spark_context.parallelize(shards_to_land, len(planned)).map(task).collect()
    landed = []
    for result in results:
        if isinstance(result, BackreadError):
            raise result
        landed.append(result)
    return landing.commit(place, run_id, landed)


def _task(place: str, strict: bool, secret_file: str | None, failures: int) -> Any:
    def land_one(shard: Shard[Any]) -> landing.Landed | BackreadError:
        from pyspark import TaskContext  # type: ignore[import-not-found, unused-ignore]

        try:
            return landing.land(place, shard, strict=strict, secret_file=secret_file)
        except BackreadError as error:
            running = TaskContext.get()
            attempt = 0 if running is None else running.attemptNumber()
            # The driver raises it as it is; of an error that ends a task it would see the text.
            if isinstance(error, LASTING) or attempt + 1 >= failures:
                return error
            raise

    return land_one
