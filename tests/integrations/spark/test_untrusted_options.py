"""The options of a read may come from a query: none of them says where the secret goes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from backread import Client, ConfigurationError, landing
from backread.integrations.spark import BackreadDataSource, land, register
from backread.integrations.spark.options import IN_CODE
from backread.testing import MockServer, World
from canned import paged, users
from conftest import SECRET
from scripted_server import ScriptedServer, answer

WORLD = World(seed=13, users=20, messages_per_user=(0, 5))
OTHER_SECRET = "mock_of_another_service"


@pytest.fixture
def server(serve: Callable[..., MockServer], spark: SparkSession) -> MockServer:
    running = serve(WORLD.copy())
    register(spark, base_url=running.url)
    return running


@pytest.fixture
def elsewhere() -> Iterator[ScriptedServer]:
    """A port of this machine that must hear nothing."""
    with ScriptedServer(lambda request: answer(403)) as listening:
        yield listening
        assert listening.requests == []


@pytest.fixture
def values(elsewhere: ScriptedServer, tmp_path: Path) -> dict[str, str]:
    """What an attacker would give as each option."""
    other = tmp_path / "other-secret"
    other.write_text(OTHER_SECRET)
    return {
        "base_url": elsewhere.url,
        "secret_file": str(other),
        "proxy": elsewhere.url,
        "ca_bundle": str(other),
        "allow_http": "true",
    }


def refused(call: Callable[[], object], name: str, server: MockServer) -> None:
    with pytest.raises(PySparkException) as caught:
        call()
    said = str(caught.value)
    assert "decides where the secret goes, so a read or a query may not set it" in said
    assert f"pass it in code: register(spark, {name}=...)" in said
    assert "Traceback" not in said
    assert SECRET not in said
    assert OTHER_SECRET not in said
    assert server.calls().count == 0


@pytest.mark.parametrize("name", IN_CODE)
def test_a_query_does_not_say_where_the_secret_goes(spark, server, values, name):
    camel = name.title().replace("_", "")
    for spelled in (name, name.upper(), camel, name.replace("_", "-")):
        given = f"resource 'users', `{spelled}` '{values[name]}'"
        refused(
            lambda given=given: spark.sql(  # type: ignore[misc]
                f"CREATE TEMPORARY VIEW taken USING backread OPTIONS ({given})"
            ),
            name,
            server,
        )
        reader = spark.read.format("backread").option(spelled, values[name])
        refused(reader.load, name, server)
        stream = spark.readStream.format("backread").option(spelled, values[name])
        refused(stream.load, name, server)
    refused(
        lambda: spark.sql(
            f"CREATE TABLE taken USING backread TBLPROPERTIES ('{name}'='{values[name]}')"
        ),
        name,
        server,
    )


def test_a_query_may_set_the_others(spark, server):
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW people USING backread "
        "OPTIONS (resource 'users', maxRetries '1', user_agent 'report/1')"
    )
    assert spark.sql("SELECT id FROM people").count() == WORLD.total_users


def test_without_register_the_environment_alone_says(spark, server, service, values):
    spark.dataSource.register(BackreadDataSource)
    for name, value in values.items():
        with pytest.raises(AnalysisException, match=name):
            spark.read.format("backread").option(name, value).load()
    frame = spark.read.format("backread").option("resource", "users").load()
    assert frame.count() == service.world.total_users
    assert server.calls().count == 0


def test_a_path_of_load_is_no_address(spark, server, elsewhere):
    with pytest.raises(AnalysisException, match="load\\(\\) takes no path"):
        spark.read.format("backread").load(elsewhere.url)
    assert server.calls().count == 0


def test_landed_runs_take_no_option_of_the_service(spark, server, values, tmp_path):
    for name, value in values.items():
        reader = spark.read.format("backread").option("landing", str(tmp_path))
        with pytest.raises(AnalysisException, match=f"option {name} is for reading the service"):
            reader.option(name, value).load()


def test_a_client_in_code_may_have_another_secret_than_the_executors(spark, tmp_path):
    """The shards of `land` are pickled, and so are the caller's own instructions."""
    with ScriptedServer(paged(users(9))) as other:
        with Client(other.url, "of-the-driver", other.vendor) as client:
            run = land(spark, tmp_path, client, shards=2, resource="users")
        assert run.rows == 9
        sent = {request.headers["authorization"] for request in other.requests}
        assert sent == {"Bearer of-the-driver", f"Bearer {SECRET}"}
        # What lies in the folder is data, and says so.
        read = len(other.requests)
        with pytest.raises(ConfigurationError, match="plan again"):
            landing.land(tmp_path, landing.load_shard(tmp_path, run.run_id, 0))
        assert len(other.requests) == read


def test_register_takes_them_from_code(spark, server, tmp_path):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    register(spark, base_url=server.url, secret_file=str(file), allow_http=True)
    assert spark.read.format("backread").option("resource", "users").load().count() > 0
    with pytest.raises(ConfigurationError, match="option proxy may not hold a password") as caught:
        register(spark, base_url=server.url, proxy="http://me:hunter2@proxy:3128")
    assert "hunter2" not in str(caught.value)
