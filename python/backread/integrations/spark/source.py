"""The data source ``backread``: reads the service in shards, or landed runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
from pyspark import TaskContext  # type: ignore[import-not-found, unused-ignore]
from pyspark.sql.datasource import (  # type: ignore[import-not-found, unused-ignore]
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from backread._client.listing import ArrowSource
from backread._client.privacy import loaded
from backread._display.words import repaired_text
from backread.errors import BackreadError, ConfigurationError
from backread.integrations.spark.columns import arrow_schema, conform, spark_schema, wanted_schema
from backread.integrations.spark.executors import check as check_executors
from backread.integrations.spark.executors import one_error, slots
from backread.integrations.spark.landed import (
    LandedReader,
    LandedStreamReader,
)
from backread.integrations.spark.options import (
    LandedOptions,
    ServiceOptions,
    parse_options,
    parse_registered,
)
from backread.sharding.live import ReadList, listed_ids, live_shards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]
    from pyspark.sql.types import StructType  # type: ignore[import-not-found, unused-ignore]

    from backread import Client
    from backread._client.privacy import Choice
    from backread.sharding.live import LiveShard

__all__ = ["BackreadDataSource", "read_once_per_stage", "register"]


def register(spark: SparkSession, *, check: bool = True, **options: object) -> None:
    """Registers the format ``backread`` in the session, for reading and for streams.

    Args:
        spark: The session.
        check: Whether a small job checks that the executors have backread and the secret, like
            `check`; not in Spark Connect.
        options: The data source's defaults for all reads of the session. ``base_url``,
            ``secret_file``, ``proxy``, ``ca_bundle``, ``allow_http``, ``pseudonymise``,
            ``drop_bodies`` and ``redact`` are only allowed here, since the options of a read may
            come from a query. ``workers`` defaults to the session's
            number of cores, except with dynamic allocation (``spark.dynamicAllocation.enabled``).

    Raises:
        ConfigurationError: For unknown or invalid options, and for an executor that cannot read the
            service.

    Example:
        >>> register(spark)
        >>> spark.read.format("backread").option("resource", "users").load()
    """
    # Spark's options are text.
    given = {name: str(value) for name, value in options.items() if value is not None}
    parsed = parse_registered(given)
    if parsed.privacy is not None and parsed.privacy.pseudonymise is not None:
        # Python workers have other working directories.
        given["pseudonymise"] = parsed.privacy.pseudonymise
    if check and slots(spark, dynamic=True) is not None:
        check_executors(spark, secret_file=parsed.secret_file)
    # After the check, because its job makes executors start.
    if parsed.workers is None and (cores := slots(spark)) is not None:
        given["workers"] = str(cores)
    spark.dataSource.register(
        type("BackreadDataSource", (BackreadDataSource,), {"defaults": given})
    )


class BackreadDataSource(DataSource):  # type: ignore[misc, unused-ignore]
    """``format("backread")``: the service, or with option ``landing`` its landed rows.

    Usually registered with `register`; ``spark.dataSource.register(BackreadDataSource)`` does the
    same without its options and its check.
    """

    defaults: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        return "backread"

    def schema(self) -> StructType:
        """The columns of the resource, see ``docs/how-to/spark.md``; sends no requests."""
        with one_error():
            options = parse_options(self.options, self.defaults)
            return spark_schema(options.resource, landed=isinstance(options, LandedOptions))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads the service, one partition per shard; with option ``landing`` one committed run."""
        with one_error():
            options = parse_options(self.options, self.defaults)
            if isinstance(options, LandedOptions):
                if options.max_runs_per_trigger is not None:
                    raise ConfigurationError("option max_runs_per_trigger is for readStream")
                return LandedReader(options, wanted_schema(schema, options.resource, landed=True))
            return ServiceReader(options, wanted_schema(schema, options.resource, landed=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Reads the committed runs of a landing folder, in order; one partition per file."""
        return LandedStreamReader(self.options, self.defaults, schema)


class ShardPartition(InputPartition):  # type: ignore[misc, unused-ignore]
    """One shard as sent to an executor; contains no secret and no key."""

    def __init__(self, shard: LiveShard, choice: Choice | None) -> None:
        super().__init__(shard.index)
        self.shard = shard
        self.choice = choice


class ServiceReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Reads each shard on an executor, with the users that are listed at that time.

    Partitions name no users, because Spark keeps a frame's partitions: for one action in 4.0, for
    all of them since 4.1.
    """

    def __init__(self, options: ServiceOptions, wanted: StructType) -> None:
        self.options = options
        self.target = arrow_schema(wanted)

    def partitions(self) -> list[InputPartition]:
        options = self.options
        with one_error():
            privacy = loaded(options.privacy)
            choice = None if privacy is None else privacy.choice
            with options.make_client() as client:
                shards = live_shards(client, options.resource, options.shards, options.workers)
            return [ShardPartition(shard, choice) for shard in shards]

    def read(self, partition: ShardPartition) -> Iterator[pyarrow.RecordBatch]:
        shard = partition.shard
        with one_error():
            privacy = loaded(self.options.privacy)
            if privacy is not None and privacy.choice != partition.choice:
                raise ConfigurationError(
                    "pseudonymise: the key file of this executor has another key than the "
                    "driver's; copy the driver's to each executor"
                )
            listing = shard.read(
                strict=self.options.strict,
                secret_file=self.options.secret_file,
                listed=read_once_per_stage(shard.plan_id),
            )
            source = ArrowSource(listing, None if privacy is None else privacy.native)
            batches = pyarrow.RecordBatchReader.from_stream(source)
            try:
                for batch in batches:
                    yield conform(batch, self.target)
            except pyarrow.ArrowException as error:
                # Arrow keeps only the text of the error that ended the stream.
                raise BackreadError(str(error).removeprefix("External error: ")) from None
            if said := repaired_text(listing.report.repaired_text):
                logging.getLogger("backread").warning("%s", said)


_last: tuple[object, list[int]] | None = None


def read_once_per_stage(plan_id: str) -> ReadList:
    """Reads the list of users, or returns what this process read for the running stage.

    Each execution of a query has separate stages, so none sees another's list. A retried task reads
    the list again.
    """

    def listed(client: Client, strict: bool) -> list[int]:
        global _last
        task = TaskContext.get()
        if task is None:
            return listed_ids(client, strict)
        stage = (plan_id, task.stageId())
        if _last is None or _last[0] != stage or task.attemptNumber() > 0:
            _last = stage, listed_ids(client, strict)
        return _last[1]

    return listed
