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
    from collections.abc import Iterable, Iterator

    from pyspark import SparkContext  # type: ignore[import-not-found, unused-ignore]
    from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]

__all__ = ["check", "context", "described", "one_error", "slots"]


def check(spark: SparkSession, *, secret_file: str | os.PathLike[str] | None = None) -> None:
    """Checks whether the executors of ``spark`` can read the service; sends it no requests.

    A job of one small task per core looks for backread, in the driver's version, and for the
    secret: in ``secret_file``, or else in ``BACKREAD_API_SECRET``. Executors that start later, or
    whose cores are all busy, are not checked.

    Raises `ConfigurationError` that names the machines where something is missing.
    """
    file = None if secret_file is None else os.fspath(secret_file)
    check_partition = _partition_check(__version__, file)
    tasks = slots(spark, dynamic=True) or 1
    with described(
        context(spark), "backread: checking that executors have the secret"
    ) as spark_context:
        results = (
            spark_context.parallelize(range(tasks), tasks).mapPartitions(check_partition).collect()
        )
    wrong = sorted({(host, problem) for host, problem in results if problem})
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


class described:  # noqa: N801
    """Sets the description of a block's jobs in Spark's UI."""

    def __init__(self, spark_context: SparkContext, text: str) -> None:
        self._context = spark_context
        self._text = text

    def __enter__(self) -> SparkContext:
        self._before = self._context.getLocalProperty("spark.job.description")
        self._context.setJobDescription(self._text)
        return self._context

    def __exit__(self, *_: object) -> None:
        self._context.setJobDescription(self._before)


def _partition_check(version: str, secret_file: str | None) -> Any:
    # A nested function is pickled by value, so it can also run where backread is not installed.
    def check_partition(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        import os
        import socket
        import sys

        host = socket.gethostname()
        try:
            import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401

            import backread

            found = backread.__version__
        except ImportError as error:
            advice = 'pip install "backread[spark]", or set another interpreter in PYSPARK_PYTHON'
            yield host, f"{error} in {sys.executable}, which runs its tasks; there: {advice}"
            return
        if found != version:
            yield host, f"they have backread {found}, but the driver has {version}"
        elif secret_file is None:
            missing = not os.environ.get("BACKREAD_API_SECRET")
            yield (
                host,
                "BACKREAD_API_SECRET is not set there; set it in the environment in which "
                "executors start, or pass secret_file, the path of a file with the secret"
                if missing
                else "",
            )
        else:
            try:
                with open(secret_file, encoding="utf-8") as file:  # noqa: PTH123
                    empty = not file.read().strip()
                yield host, f"secret_file {secret_file} is empty" if empty else ""
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not text"
                yield host, f"secret_file {secret_file} cannot be read: {reason}"

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
