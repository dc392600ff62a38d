"""Spark Connect, and a standalone master whose two workers have the secret in a file alone."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import clusters
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from backread import ConfigurationError
from backread.integrations.spark import check, land, register
from backread.testing import MockServer, World
from conftest import SECRET, held, land_here, rows

pytestmark = pytest.mark.long

WORLD = World(seed=13, users=60, messages_per_user=(0, 120))


@pytest.fixture(scope="module")
def spark(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    place = tmp_path_factory.mktemp("standalone")
    bare = {name: value for name, value in environment.items() if name != "BACKREAD_API_SECRET"}
    with clusters.standalone(place, bare) as address:
        session = clusters.start(address, place)
        yield session
        session.stop()


@pytest.fixture
def server(serve: Callable[..., MockServer]) -> MockServer:
    return serve(WORLD.copy())


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    return str(file)


def test_executors_without_the_secret_are_one_error_before_anything_is_sent(
    spark, server, secret_file, tmp_path
):
    with pytest.raises(ConfigurationError, match="set BACKREAD_API_SECRET in the environment"):
        register(spark, base_url=server.url)
    with pytest.raises(ConfigurationError, match="secret_file /nowhere cannot be read"):
        check(spark, secret_file="/nowhere")
    with (
        server.client() as client,
        pytest.raises(ConfigurationError, match="set BACKREAD_API_SECRET in the environment"),
    ):
        land(spark, tmp_path, client)
    assert server.calls().count == 0
    check(spark, secret_file=secret_file)
    # Unasked, they say it themselves.
    register(spark, base_url=server.url, check=False)
    with pytest.raises(PySparkException) as caught:
        spark.read.format("backread").load().collect()
    assert "ConfigurationError: shard 0 of 1 travels without the API secret" in str(caught.value)
    assert server.calls("messages").count == 0


def test_a_connect_session_reads_and_is_told_what_it_cannot(environment, service, tmp_path):
    with service.client() as client:
        expected = held(client)
        for _ in range(2):
            land_here(client, tmp_path / "landing")
    driver = Path(__file__).with_name("connect_driver.py")
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, str(driver), str(tmp_path)],
            # By this the server takes a port that is free.
            env={**environment, "SPARK_TESTING": "1"},
            stdout=log,
            stderr=log,
            timeout=600,
        )
    assert done.returncode == 0, (tmp_path / "log").read_text()

    found = {name: read(tmp_path, name) for name in ("service", "landed", "newest")}
    assert found == {"service": expected, "landed": expected, "newest": expected}
    refused = json.loads((tmp_path / "refused.json").read_text())
    for name in ("check", "land"):
        assert "Spark Connect, which gives no access" in refused[name]
    assert refused["register"].startswith("there is no option resourse; the options are")


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """What the driver wrote, without the number of the run."""
    found = rows(pyarrow.parquet.read_table(folder / f"{name}.parquet"))
    return [{column: row[column] for column in row if column != "run"} for row in found]
