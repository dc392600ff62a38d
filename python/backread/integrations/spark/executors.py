"""Checks the executors for cores, backread, and the secret; shows backread's errors in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from backread import __version__
from backread.errors import BackreadError, ConfigurationError
from backread.sharding.planning import MOST_SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark import SparkContext  # type: ignore[import-not-found, unused-ignore]
    from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]

__all__ = ["check", "context", "one_error", "slots"]


def check(spark: SparkSession, *, secret_file: str | os.PathLike[str] | None = None) -> None:
    """Checks whether the executors of ``spark`` can read the service; sends it no requests.

    A job of one small task per core looks for backread, in the driver's version, and for the
    secret: in ``secret_file``, or else in ``BACKREAD_API_SECRET``. Executors that start later, or
    whose cores are all busy, are not checked.

    Raises `ConfigurationError` that names the machines where something is missing.
    """
    check_partition = _partition_check(__version__, secret_file)
    tasks = slots(spark, dynamic=True) or 1
    wanted = context(spark).parallelize(range(tasks), tasks)
    wrong = sorted(set(wanted.mapPartitions(check_partition).collect()))
    if wrong:
        hosts = ", ".join(sorted({host for host, _ in wrong}))
        raise ConfigurationError(f"the executors on {hosts} cannot read the service: {wrong[0][1]}")


def slots(spark: SparkSession, *, dynamic: bool = False) -> int | None:
    """How many tasks run at once, limited to the most shards of a plan.

    None in Spark Connect, and with dynamic allocation unless ``dynamic``, which counts the current
    executors.
    """
    try:
        spark_context = context(spark)
    except ConfigurationError:
        return None
    settings = spark_context.getConf()
    if settings.get("spark.dynamicAllocation.enabled", "false") == "true" and not dynamic:
        return None
    # Requested executors may not have started yet.
    asked = int(settings.get("spark.executor.instances", "0"))
    asked *= int(settings.get("spark.executor.cores", "1"))
    return min(MOST_SHARDS, max(1, asked, int(spark_context.defaultParallelism)))


def context(spark: SparkSession) -> SparkContext:
    """The session's context; `ConfigurationError` in Spark Connect, which has none."""
    try:
        return spark.sparkContext
    except Exception:
        raise ConfigurationError(
            "this does not work in Spark Connect, which gives no access to executors; use the "
            "driver's session, or read with format('backread')"
        ) from None


def _partition_check(version: str, secret_file: str | os.PathLike[str] | None) -> Any:
    # A nested function is pickled by value, so it can also run where backread is not installed.
    def check_partition(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        import socket
        import sys

        host = socket.gethostname()
        try:
            import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401

            import backread
        except ImportError as error:
            advice = 'pip install "backread[spark]", or set another interpreter in PYSPARK_PYTHON'
            yield host, f"{error} in {sys.executable}, which runs its tasks; there: {advice}"
            return
        if backread.__version__ != version:
            yield host, f"they have backread {backread.__version__}, but the driver has {version}"
            return
        try:
            from backread.sharding.shard import secret_here

            secret_here("a task", secret_file)
        except backread.ConfigurationError as error:
            yield host, str(error)

    return check_partition


@contextmanager
def one_error() -> Iterator[None]:
    """Makes Spark show a backread error's text only, which says all that a traceback could.

    A Spark process that ends in a Python error serves nothing else afterwards.
    """
    try:
        yield
    except BackreadError:
        if "pyspark.worker_util" in sys.modules:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
