"""`land`: executors read the service into immutable files, and the driver commits them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from backread import landing, plan
from backread._client.privacy import Privacy, loaded
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
from backread.landing.storage import absolute_folder

if TYPE_CHECKING:
    from pyspark import SparkContext  # type: ignore[import-not-found, unused-ignore]
    from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]

    from backread import Client, Shard
    from backread.integrations.spark.options import Resource
    from backread.landing import Committed

__all__ = ["land"]

LOCAL = re.compile(r"local(?:\[[^,\]]+(?:,\s*(\d+)\s*)?\])?")
"""A master that runs tasks in this process; ``local[4, 2]`` lets a task fail once."""

LASTING = (
    AuthenticationError,
    ConfigurationError,
    IncompleteError,
    LandingError,
    PermissionDeniedError,
)
"""Errors that another attempt would get too."""


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
    pseudonymise: str | os.PathLike[str] | None = None,
    drop_bodies: bool = False,
    redact: bool = False,
) -> Committed:
    """Reads the service into a folder that driver and executors share, as one committed run.

    The driver plans, each shard is a task that writes a file, and the driver commits a manifest
    that names one file per shard. Spark may run a task again, if its executor is lost or
    speculatively; the run still contains each row once, because the manifest names only one of the
    files. The run does not exist before the commit and never changes after it.

    Args:
        spark: A session with executors; not one of Spark Connect.
        folder: A path, or a URI that pyarrow supports (``s3://``, ``gs://``, ``hdfs://``).
        client: The service and the options for reading it; None for ``Client()``. Its secret stays
            on the driver; executors read theirs from ``secret_file``, or else from their
            ``BACKREAD_API_SECRET``.
        resource: As for `backread.plan`, like ``shards`` and ``strict``.
        shards: How many tasks.
        workers: How many shards are read at once, by which the client's rate limit is divided; None
            for the session's number of cores, or for all shards with dynamic allocation.
        strict: Raises `IncompleteError` if nothing was proved.
        secret_file: A file with the API secret that all executors can read.
        check: Whether to check first that the executors have the secret.
        pseudonymise: As for `backread.landing.land`, like ``drop_bodies`` and ``redact``. The key
            file must be on the driver and on each executor.

    Returns:
        The run as in `backread.landing.runs`, with its number, its rows and the joined report of
        all shards.

    Raises:
        ConfigurationError: Before reading anything, if an executor cannot read.
        BackreadError: The client's errors from plan and shards.
        LandingError: The folder cannot be written.
        Exception: Spark's own, if a task failed for another reason more often than
            ``spark.task.maxFailures`` allows. After any error, no run was committed.
    """
    spark_context = context(spark)
    file = None if secret_file is None else os.fspath(secret_file)
    privacy = Privacy.of(pseudonymise, drop_bodies, redact)
    # Before anything is read; each executor reads its own.
    loaded(privacy)
    place = absolute_folder(folder)
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
    failures = _most_failures(spark_context)
    task = _task(place, strict, file, failures, privacy)
    shards_to_land = list(planned)
    with described(spark_context, f"backread: landing {resource}, {len(planned)} shards"):
        results = spark_context.parallelize(shards_to_land, len(planned)).map(task).collect()
    landed = []
    for result in results:
        if isinstance(result, BackreadError):
            raise result
        landed.append(result)
    return landing.commit(place, run_id, landed)


def _most_failures(spark_context: SparkContext) -> int:
    """How often a task may fail, the last time included; local masters ignore the setting."""
    local = LOCAL.fullmatch(spark_context.master)
    if local is not None:
        return int(local[1] or 1)
    return int(spark_context.getConf().get("spark.task.maxFailures", "4"))


def _task(
    place: str, strict: bool, secret_file: str | None, failures: int, privacy: Privacy | None
) -> Any:
    chosen = privacy or Privacy()

    def land_one(shard: Shard[Any]) -> landing.Landed | BackreadError:
        from pyspark import TaskContext  # type: ignore[import-not-found, unused-ignore]

        try:
            return landing.land(
                place,
                shard,
                strict=strict,
                secret_file=secret_file,
                pseudonymise=chosen.pseudonymise,
                drop_bodies=chosen.drop_bodies,
                redact=chosen.redact,
            )
        except BackreadError as error:
            running = TaskContext.get()
            attempt = 0 if running is None else running.attemptNumber()
            # Returned, so that the driver raises it; of a raised error it would see only the text.
            if isinstance(error, LASTING) or attempt + 1 >= failures:
                return error
            raise

    return land_one
