"""A driver of Spark Connect, with a server of its own in a process that has no other session.

Usage: ``python connect_driver.py FOLDER``; FOLDER has ``landing``, and gets what was read, as
Parquet, and what was refused, in ``refused.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

from backread import ConfigurationError
from backread.integrations.spark import check, land, newest, register


def refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except ConfigurationError as error:
        return str(error)
    return "nothing"


def main(folder: Path) -> None:
    spark: SparkSession = (
        SparkSession.builder.remote("local[2]")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .getOrCreate()
    )
    register(spark, shards=2)
    landed = str(folder / "landing")
    frames: dict[str, DataFrame] = {
        "service": spark.read.format("backread").load(),
        "landed": spark.read.format("backread").option("landing", landed).load(),
        "newest": newest(spark.read.format("backread").option("landing", landed).load()),
    }
    for name, frame in frames.items():
        pyarrow.parquet.write_table(frame.toArrow(), folder / f"{name}.parquet")
    refused = {
        "check": refusal(lambda: check(spark)),
        "land": refusal(lambda: land(spark, folder / "new")),
        "register": refusal(lambda: register(spark, resourse="users")),
    }
    (folder / "refused.json").write_text(json.dumps(refused))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
