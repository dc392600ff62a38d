"""The data source in a session: rows, columns, errors, and where the secret is not."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pyarrow
import pytest
from pyspark.cloudpickle import dumps
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from repeated_queries import mistakes

from backread.integrations.spark import BackreadDataSource, register
from backread.testing import MockServer, World
from conftest import SECRET, held, rows
from helpers import expected_rows
from helpers.api_rows import message, paged, user
from helpers.refused_offsets import REFUSALS, WINDOW, Accounts
from helpers.scripted_server import Request, ScriptedServer

WORLD = World(seed=11, users=60, messages_per_user=(0, 120))
VALUES: list[Any] = [
    *(True, 0, -1, 7.5, 2**63, -(2**70), "", "seven", "yesterday", "2024-03-05T09:31:07.042Z"),
    *([], [None], [17], [{}, 7], [{"name": 7}], {}, {"id": "7"}, {"id": 7, "name": []}, None),
]
"""Of other types than documented, in one field or another."""


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


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_any_value_in_any_field_is_a_row(spark, resource):
    row = user(1) if resource == "users" else message(1)
    cases = [(name, value) for name in row if name != "id" for value in VALUES]
    sent = [{**row, "id": 1 + at, name: value} for at, (name, value) in enumerate(cases)]

    def service(request: Request) -> bytes:
        key = "messages" if "messages" in request.path else "users"
        return paged(sent if key == resource else [user(5)], key=key)(request)

    models = expected_rows.rows(json.dumps({resource: sent}).encode(), resource, 5)
    with ScriptedServer(service) as server:
        register(spark, base_url=server.url)
        found = read(spark, resource=resource, shards=2).toArrow().to_pylist()
    by_id = {each["id"]: each for each in map(expected_rows.loaded, found)}
    assert len(found) == len(by_id) == len(sent)
    for expected in (expected_rows.columns(each.model) for each in models):
        assert by_id[expected["id"]] == expected


def test_the_messages_of_the_users_before_a_page_that_is_refused_are_read(spark):
    with ScriptedServer(Accounts(REFUSALS["400"])) as server:
        register(spark, base_url=server.url)
        found = read(spark, resource="messages", shards=2).select("id").toArrow()
    assert sorted(found["id"].to_pylist()) == list(range(1, WINDOW + 1))


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
