"""The data source on two executors: the rows are those of one walk, also where an executor dies."""

import re
import threading
import urllib.request
from collections.abc import Callable
from typing import Any

import clusters
import pyarrow
import pytest
from pyspark.cloudpickle import dumps
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from backread import ConfigurationError
from backread.integrations.spark import BackreadDataSource, register
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


def test_an_executor_that_is_killed_costs_no_row(spark, server):
    with server.client() as client:
        expected = held(client)
    undisturbed = server.calls("messages").count
    server.forget()
    server.fault("messages: latency(100)")
    got: list[Any] = []
    frame = read(spark, shards=6, max_concurrency=2)
    reading = threading.Thread(target=lambda: got.append(rows(frame)))
    reading.start()
    clusters.until(lambda: server.calls("messages").count >= 8, "the shards are being read")
    clusters.kill(spark)
    reading.join()
    assert got == [expected]
    # Both executors had begun; what the dead one had read was read again.
    assert server.calls("messages").count > undisturbed


# --- one clear error --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"resourse": "users"}, "there is no option resourse; did you mean resource?"),
        ({"Max_Concurency": "4"}, "did you mean max_concurrency?"),
        ({"resource": "chats"}, "option resource must be users or messages, not 'chats'"),
        ({"shards": "many"}, "option shards must be a whole number, not 'many'"),
        ({"workers": "99999"}, "option workers must be 1 to 10000, not '99999'"),
        ({"landing": "/x", "shards": "2"}, "option shards is for reading the service"),
        ({"run": "2"}, "option run is for reading landed runs"),
        ({"api_secret": SECRET}, "option api_secret is refused, because Spark shows its options"),
        ({"token": SECRET}, "option token is refused, because Spark shows its options"),
    ],
)
def test_a_bad_option_is_one_error_where_it_is_loaded(spark, server, options, text):
    with pytest.raises(AnalysisException) as caught:
        read(spark, **options)
    said = str(caught.value)
    assert text in said
    assert "Traceback" not in said
    assert SECRET not in said
    # Landed runs are for a read, whatever else is wrong.
    registered = "option landing" if "landing" in options else text.partition(" is for")[0]
    with pytest.raises(ConfigurationError, match=re.escape(registered)):
        register(spark, **options)
    assert server.calls().count == 0


@pytest.mark.parametrize(
    ("options", "schema", "text"),
    [
        ({"timeout": "-1"}, None, "timeout"),
        ({"landing": "/nowhere"}, None, "/nowhere has no committed run of messages"),
        (
            {},
            "id BIGINT, text STRING",
            "the schema has an unknown column text; the columns are user_id",
        ),
        ({}, "id STRING", "the schema has id as string, but it is bigint"),
    ],
)
def test_what_cannot_be_read_is_one_error_where_it_is_planned(spark, server, options, schema, text):
    reader = spark.read.format("backread").options(**options)
    frame = (reader if schema is None else reader.schema(schema)).load()
    with pytest.raises(AnalysisException) as caught:
        frame.collect()
    assert text in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert server.calls().count == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"base_url": "http://chat.example.com"}, "is plain http"),
        ({"secret_file": "/nowhere/secret"}, "secret_file /nowhere/secret cannot be read: "),
    ],
)
def test_what_was_registered_and_cannot_be_used_is_one_error_where_it_is_planned(
    spark, options, text
):
    register(spark, check=False, **options)
    with pytest.raises(AnalysisException) as caught:
        read(spark).collect()
    assert text in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_wrong_secret_is_one_error_where_it_is_planned(spark, server, tmp_path):
    file = tmp_path / "secret"
    file.write_text("mock_of_another_service")
    register(spark, base_url=server.url, secret_file=str(file))
    with pytest.raises(AnalysisException) as caught:
        read(spark).collect()
    assert "AuthenticationError" in str(caught.value)
    assert "401" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert "mock_of_another_service" not in str(caught.value)


def test_what_an_executor_meets_is_told_in_its_own_words(spark, server):
    server.fault("messages: status(403)")
    with pytest.raises(PySparkException) as caught:
        read(spark, shards=2).collect()
    said = str(caught.value)
    assert "PermissionDeniedError: GET /external/users/" in said
    assert 'File "' not in said.partition("Driver stacktrace")[0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "a stream reads landed runs"),
        ({"landing": "/x", "run": "2"}, "option run is for batch reads; a stream reads every run"),
        ({"landing": "/nowhere"}, "the landing folder /nowhere does not exist; check its name"),
    ],
)
def test_a_stream_of_what_is_no_landing_is_one_error(spark, server, tmp_path, options, text):
    stream = spark.readStream.format("backread").options(**options).load()
    query = (
        stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    )
    with pytest.raises(PySparkException) as caught:
        query.awaitTermination()
    assert text in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_to_write_is_one_error(spark, server, mode):
    with pytest.raises(AnalysisException) as caught:
        spark.range(1).write.format("backread").mode(mode).save()
    assert "ConfigurationError: backread cannot write" in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_to_write_a_stream_is_one_error(spark, server, tmp_path):
    writer = spark.readStream.format("rate").load().writeStream.format("backread")
    with pytest.raises(PySparkException) as caught:
        writer.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    assert "ConfigurationError: backread cannot write" in str(caught.value)
    assert "Traceback" not in str(caught.value)


# --- the secret -------------------------------------------------------------------------------


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
    with pytest.raises(AnalysisException):
        read(spark, api_secret=SECRET)

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
    written = [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]
    logs = [each for each in written if "events" in each.parts or "work" in each.parts]
    assert any("events" in each.parts for each in logs)
    assert any(each.name == "stderr" for each in logs)
    for log in logs:
        assert SECRET.encode() not in log.read_bytes(), log


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
