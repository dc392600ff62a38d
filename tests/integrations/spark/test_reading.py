"""The data source in a session: rows, columns, errors, and where the secret is not."""

import urllib.request
from collections.abc import Callable
from typing import Any

import pyarrow
import pytest
from pyspark import TaskContext
from pyspark.cloudpickle import dumps
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from repeated_queries import mistakes

from backread import Client
from backread.integrations.spark import BackreadDataSource, register, source
from backread.integrations.spark.source import read_once_per_stage
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


def test_columns_may_be_chosen(spark, server):
    frame = spark.read.format("backread").schema("id BIGINT, body STRING").load()
    some = frame.where("body is not null").toArrow()
    assert some.schema.names == ["id", "body"]
    with server.client() as client:
        assert {row["id"] for row in some.to_pylist()} <= {row["id"] for row in held(client)}
    assert some.num_rows > 0


def test_the_schema_is_that_of_the_arrow_stream(server):
    with server.client() as client:
        for resource, listing in (
            ("users", client.users.list()),
            ("messages", client.messages.all()),
        ):
            theirs = BackreadDataSource({"resource": resource}).schema()
            ours = pyarrow.schema(listing)
            assert theirs.fieldNames() == ours.names
            assert [field.nullable for field in theirs] == [field.nullable for field in ours]


def test_each_query_on_one_frame_reads_the_rows_there_are(spark, serve):
    # Each user has messages, so that messages tell how many users they are of.
    server = serve(World(seed=17, users=230, messages_per_user=(1, 3)))
    register(spark, base_url=server.url)
    assert mistakes(spark, server.world) == []


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


def test_to_write_is_one_error(spark, server, tmp_path):
    def overwrite() -> None:
        spark.range(1).write.format("backread").mode("overwrite").save()

    def stream() -> None:
        writer = spark.readStream.format("rate").load().writeStream.format("backread")
        writer.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()

    for write in (overwrite, stream):
        with pytest.raises(PySparkException) as caught:
            write()
        assert "is not implemented" in str(caught.value)


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


class Task:
    """A task as Spark tells a process of it."""

    def __init__(self, stage: int, attempt: int = 0) -> None:
        self.stage, self.attempt = stage, attempt

    def stageId(self) -> int:  # noqa: N802
        return self.stage

    def attemptNumber(self) -> int:  # noqa: N802
        return self.attempt


def test_the_list_is_that_of_the_stage_and_a_second_attempt_reads_it_again(monkeypatch):
    times: list[int] = []

    def listed_ids(client: Client, strict: bool) -> list[int]:
        times.append(len(times))
        return [times[-1]]

    monkeypatch.setattr(source, "listed_ids", listed_ids)
    client: Any = None
    seen = []
    for plan_id, task in (
        ("one", Task(3)),
        ("one", Task(3)),
        # The next query on the same frame.
        ("one", Task(4)),
        # Another frame, in the same stage.
        ("two", Task(4)),
        ("two", Task(4, attempt=1)),
        ("two", Task(4)),
        ("two", None),
    ):
        monkeypatch.setattr(TaskContext, "get", lambda task=task: task)
        seen += read_once_per_stage(plan_id)(client, False)
    assert seen == [0, 0, 1, 2, 3, 3, 4]
