"""`land`: tasks write files of their own, the driver names one for each shard."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from backread import PermissionDeniedError, landing
from backread.integrations.spark import land, newest, register
from backread.testing import MockServer, World
from conftest import held, rows

WORLD = World(seed=12, users=60, messages_per_user=(0, 120))


@pytest.fixture
def server(serve: Callable[..., MockServer], spark: SparkSession) -> MockServer:
    return serve(WORLD.copy())


def without_run(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "run"} for row in found]


def test_runs_are_read_by_their_number_and_the_newest_otherwise(spark, server, tmp_path):
    register(spark)
    frames = []
    for _ in range(2):
        with server.client() as client:
            land(spark, tmp_path, client, resource="users", shards=2)
            frames.append(held(client, "users"))
        server.world.add_users(3)
        server.world.remove_user(server.world.user_ids()[0])
    source = spark.read.format("backread").option("landing", str(tmp_path))
    source = source.option("resource", "users")
    assert without_run(rows(source.load())) == frames[1]
    assert without_run(rows(source.option("run", 1).load())) == frames[0]
    both = source.load().unionByName(source.option("run", 2).load())
    every = {row["id"]: row for frame in frames for row in frame}
    one_each = rows(newest(both))
    assert without_run(one_each) == [every[user_id] for user_id in sorted(every)]


def test_an_error_of_a_task_is_the_error_of_the_call(spark, server, tmp_path):
    server.fault("messages: status(403)")
    with server.client() as client, pytest.raises(PermissionDeniedError, match="may not read this"):
        land(spark, tmp_path, client, shards=2)
    server.clear_faults()
    server.fault("messages: status(503)")
    with (
        server.client(max_retries=0) as client,
        pytest.raises(Exception, match="503"),
    ):
        land(spark, tmp_path, client, shards=2)
    assert landing.runs(tmp_path) == []


def test_a_frame_stays_with_the_run_that_it_read_first(spark, server, tmp_path):
    register(spark)
    with server.client() as client:
        first = land(spark, tmp_path, client, shards=2)
        frame = spark.read.format("backread").option("landing", str(tmp_path)).load()
        assert frame.count() == first.rows
        server.world.add_messages(server.world.user_ids()[0], 3)
        second = land(spark, tmp_path, client, shards=2, check=False)
    assert frame.count() == first.rows
    again = spark.read.format("backread").option("landing", str(tmp_path)).load()
    assert again.count() == second.rows == first.rows + 3
