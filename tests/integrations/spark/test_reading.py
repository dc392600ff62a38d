"""The data source in a session: rows, columns, errors, and where the secret is not."""

import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.cloudpickle import dumps
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from backread import PermissionDeniedError, landing
from backread.integrations.spark import BackreadDataSource, land, newest, register
from backread.testing import MockServer, World
from conftest import SECRET, held, rows

WORLD = World(seed=11, users=60, messages_per_user=(0, 120))


@pytest.fixture
def server(serve: Callable[..., MockServer], spark: SparkSession) -> MockServer:
    running = serve(WORLD.copy())
    register(spark, base_url=running.url)
    return running


def read(spark: SparkSession, **options: object) -> DataFrame:
    return spark.read.format("backread").options(**options).load()


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_the_rows_are_those_of_one_walk(spark, server, resource):
    frame = read(spark, resource=resource, shards=3)
    with server.client() as client:
        assert rows(frame) == held(client, resource)
    # The list of users is one walk.
    assert frame.rdd.getNumPartitions() == (1 if resource == "users" else 3)


def test_each_query_on_one_frame_reads_the_rows_there_are(spark, serve):
    """Also when it is run more than once, while the service changes."""
    # Each user has messages, so that messages tell how many users they are of.
    server = serve(World(seed=17, users=230, messages_per_user=(1, 3)))
    world = server.world
    register(spark, base_url=server.url)
    users, messages = read(spark, resource="users"), read(spark, shards=3)
    strict, strict_users = (
        read(spark, shards=3, strict=True),
        read(spark, resource="users", strict=True),
    )
    users.createOrReplaceTempView("people")
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW chats USING backread "
        "OPTIONS (resource 'messages', shards '3')"
    )
    join = "SELECT count(*) FROM chats JOIN people ON chats.user_id = people.id"

    def check() -> None:
        each_user = [
            users.count(),
            strict_users.count(),
            len(users.collect()),
            messages.select("user_id").distinct().count(),
        ]
        assert each_user == [world.total_users] * 4
        each_message = [
            messages.count(),
            strict.count(),
            len(messages.select("id").collect()),
            messages.join(users, messages.user_id == users.id).count(),
            spark.sql(join).collect()[0][0],
        ]
        assert each_message == [world.total_messages] * 5

    check()
    world.add_users(20)
    world.add_messages(world.user_ids()[0], 3)
    check()
    for user_id in world.user_ids()[1:60:2]:
        world.remove_user(user_id)
    check()


@pytest.mark.parametrize(
    ("options", "schema", "text"),
    [
        ({"Max_Concurency": "4"}, None, "there is no option max_concurency; the options are"),
        ({"api_secret": SECRET}, None, "The secret is none, because Spark shows options"),
        ({"landing": "/nowhere"}, None, "/nowhere has no committed run of messages"),
        ({}, "id STRING", "the schema has id as string; the columns are"),
    ],
)
def test_what_cannot_be_read_is_one_error_before_anything_is_sent(
    spark, server, options, schema, text
):
    reader = spark.read.format("backread").options(**options)
    with pytest.raises(AnalysisException) as caught:
        (reader if schema is None else reader.schema(schema)).load().collect()
    said = str(caught.value)
    assert text in said
    assert "Traceback" not in said
    assert SECRET not in said
    assert server.calls().count == 0


def test_an_error_of_an_executor_is_in_its_own_words(spark, server):
    server.fault("messages: status(403)")
    with pytest.raises(PySparkException) as caught:
        read(spark, shards=2).collect()
    said = str(caught.value)
    assert f"PermissionDeniedError: GET {server.url}/external/users/" in said
    assert 'File "' not in said.partition("Driver stacktrace")[0]


def test_to_write_is_one_error(spark, server):
    with pytest.raises(PySparkException, match="is not implemented"):
        spark.range(1).write.format("backread").mode("overwrite").save()


def test_the_secret_is_in_no_plan_page_log_or_partition(spark, server, folder, tmp_path):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    for options in ({}, {"secret_file": str(file)}):
        registered = {"base_url": server.url, **options}
        register(spark, **registered)
        frame = read(spark, shards=2)
        assert frame.count() > 0
        execution = frame._jdf.queryExecution()
        assert SECRET not in execution.toString() + execution.executedPlan().toString()
        kind = type("Registered", (BackreadDataSource,), {"defaults": registered})
        source = kind({"shards": "2"})
        reader = source.reader(source.schema())
        assert SECRET.encode() not in dumps((source, reader, reader.partitions()))

    pages = str(spark.sparkContext.uiWebUrl)
    application = f"/api/v1/applications/{spark.sparkContext.applicationId}"
    shown = [f"/{page}/" for page in ("jobs", "stages", "environment", "executors", "SQL")]
    shown += [
        f"{application}/{part}"
        for part in ("environment", "stages?details=true", "allexecutors", "sql?details=true")
    ]
    for page in shown:
        with urllib.request.urlopen(f"{pages}{page}", timeout=60) as answer:
            text = answer.read().decode()
        assert text
        assert SECRET not in text, page
    logs = [each for each in (folder / "events").rglob("*") if each.is_file()]
    assert logs
    for log in logs:
        assert SECRET.encode() not in log.read_bytes(), log


# --- `land`: tasks write files of their own, the driver names one for each shard ------------------


def without_run(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in row if name != "run"} for row in found]


def test_runs_are_read_by_their_number_and_the_newest_otherwise(spark, server, tmp_path):
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
    with server.client() as client:
        first = land(spark, tmp_path, client, shards=2)
        frame = spark.read.format("backread").option("landing", str(tmp_path)).load()
        assert frame.count() == first.rows
        server.world.add_messages(server.world.user_ids()[0], 3)
        second = land(spark, tmp_path, client, shards=2, check=False)
    assert frame.count() == first.rows
    again = spark.read.format("backread").option("landing", str(tmp_path)).load()
    assert again.count() == second.rows == first.rows + 3
