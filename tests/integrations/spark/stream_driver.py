"""A driver with two queries over the same landed runs, to be killed and started again.

Usage: ``python stream_driver.py FOLDER [stall]``; FOLDER has ``landing``, and gets the rest. One
query merges into a Delta table, one run a batch; the other adds to a folder of Parquet files. With
``stall`` both stand still in their second batch: one when it has merged and before the batch is
checkpointed, the other in the middle of its rows; each makes a file that says so. Before PySpark
4.2 a batch takes all runs that are there, and availableNow is one batch.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import clusters
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf

from backread.integrations.spark import merge_into_delta, newest, register

ONE_RUN_A_BATCH = importlib.util.find_spec("pyspark.sql.streaming.datasource") is not None


def stand_still(said: Path) -> None:
    said.touch()
    time.sleep(3600)


def main(folder: Path, stall: bool) -> None:
    spark: SparkSession = clusters.start("local[4]", folder)
    register(spark, check=False)
    source = spark.readStream.format("backread").option("landing", str(folder / "landing"))
    landed = source.option("max_runs_per_trigger", 1) if ONE_RUN_A_BATCH else source
    merge = merge_into_delta(folder / "table")

    def merge_and(frame: DataFrame, batch: int) -> None:
        merge(frame, batch)
        if stall and batch == 1:
            stand_still(folder / "merged")

    def pass_on(run: int, number: int) -> int:
        if stall and run == 3 and number % 50 == 0:
            stand_still(folder / "written")
        return run

    passed_on = udf(pass_on, "bigint")
    merging = landed.load().writeStream.foreachBatch(merge_and)
    adding = landed.load().withColumn("run", passed_on(col("run"), col("id"))).writeStream
    # The one batch may be that of a query that was killed; what came since is in the next.
    for _ in range(1 if ONE_RUN_A_BATCH else 2):
        queries = [
            writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
            .trigger(availableNow=True)
            .start()
            for name, writer in (
                ("merging", merging),
                ("adding", adding.format("parquet").option("path", str(folder / "sink"))),
            )
        ]
        for query in queries:
            query.awaitTermination()
    # Spark alone reads the log that says which files of a sink count.
    sink = spark.read.parquet(str(folder / "sink"))
    sink.coalesce(1).write.mode("overwrite").parquet(str(folder / "all"))
    newest(sink).coalesce(1).write.mode("overwrite").parquet(str(folder / "newest"))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), "stall" in sys.argv)
