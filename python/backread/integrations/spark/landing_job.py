"""`land`: executors read the service into immutable files, and the driver commits them."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from backread import landing, plan
from backread._client.privacy import Privacy, loaded
from backread.errors import BackreadError
from backread.integrations.spark.executors import check as check_executors
from backread.integrations.spark.executors import context, slots
from backread.integrations.spark.options import ServiceOptions
from backread.landing.storage import absolute_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]

    from backread import Client, Shard
    from backread.integrations.spark.options import Resource
    from backread.landing import Committed

__all__ = ["land"]


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
    privacy = Privacy.of(pseudonymise, drop_bodies, redact)
    # Before anything is read; each executor reads its own.
    loaded(privacy)
    place = absolute_folder(folder)
    if check:
        check_executors(spark, secret_file=secret_file)
    own = ServiceOptions(secret_file=secret_file).make_client() if client is None else client
    with own if client is None else nullcontext(own) as planning:
        planned = plan(
            planning,
            resource=resource,
            shards=shards,
            workers=slots(spark) if workers is None else workers,
            strict=strict,
        )
    run_id = landing.begin(place, planned)
    task = _task(
        place,
        strict=strict,
        secret_file=secret_file,
        # The absolute path, since executors have other working directories.
        pseudonymise=None if privacy is None else privacy.pseudonymise,
        drop_bodies=drop_bodies,
        redact=redact,
    )
    landed = spark_context.parallelize(list(planned), len(planned)).map(task).collect()
    for result in landed:
        if isinstance(result, BackreadError):
            raise result
    return landing.commit(place, run_id, landed)


def _task(place: str, **options: Any) -> Any:
    def land_one(shard: Shard[Any]) -> landing.Landed | BackreadError:
        try:
            return landing.land(place, shard, **options)
        except BackreadError as error:
            # Returned, so that the driver raises it; of a raised error it would see only the text.
            return error

    return land_one
