"""Spark Connect, and a standalone master whose two workers have the secret in a file alone."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import clusters
import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from backread import ConfigurationError, landing
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


@pytest.mark.parametrize("way", ["read", "land"])
def test_an_executor_that_is_killed_costs_no_row(spark, server, secret_file, tmp_path, way):
    register(spark, base_url=server.url, secret_file=secret_file)
    with server.client() as client:
        expected = held(client)
    server.forget()
    server.fault("messages: latency(100)")
    got: list[Any] = []
    runs: list[landing.Committed] = []

    def work() -> None:
        if way == "read":
            frame = spark.read.format("backread").options(shards=6, max_concurrency=2).load()
            got.append(rows(frame))
            return
        with server.client(max_concurrency=2) as client:
            run = land(spark, tmp_path / "landed", client, shards=6, secret_file=secret_file)
        got.append(rows(landing.dataset(tmp_path / "landed", run).to_table()))
        runs.append(run)

    working = threading.Thread(target=work)
    working.start()
    clusters.until(lambda: server.calls("messages").count >= 8, "the shards are being read")
    clusters.kill(spark)
    working.join()
    assert got == [expected]
    if way == "land":
        [run] = runs
        assert landing.runs(tmp_path / "landed") == runs
        assert (run.number, len(run.files), run.rows) == (1, 6, len(expected))
        # The unfinished file of the killed executor is in no manifest.
        written = {
            str(file.relative_to(tmp_path / "landed"))
            for file in (tmp_path / "landed").rglob("*.parquet")
        }
        assert written > set(run.files)


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
