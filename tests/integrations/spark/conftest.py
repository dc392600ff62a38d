"""Sessions of Spark for the tests in this folder, and a service for them to read, faked.

One process has one Java machine, whose environment is that of the moment it started in: so all
services of these tests have one secret, which stands in the environment from the beginning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import clusters
import pytest
from pyspark.sql import DataFrame, SparkSession

from backread import Client, landing, plan
from backread.testing import MockServer, World

SECRET = "mock_told_to_nobody_0123456789"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Spark writes is in here."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def service() -> Iterator[MockServer]:
    """The service that the environment names."""
    world = World(seed=7, users=30, messages_per_user=(1, 30))
    with MockServer(world, secret=SECRET, vendor="acme") as server:
        yield server


@pytest.fixture(scope="session")
def environment(folder: Path, service: MockServer) -> Iterator[dict[str, str]]:
    """The environment of this process, of Java's machine, and of whatever the tests start."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("BACKREAD_", "SPARK_"))]:
            patch.delenv(name)
        spark_home = clusters.home(folder)
        for name, value in clusters.settings(spark_home).items():
            patch.setenv(name, value)
        patch.setenv("BACKREAD_API_SECRET", SECRET)
        patch.setenv("BACKREAD_BASE_URL", service.url)
        patch.setenv("BACKREAD_VENDOR", "acme")
        yield dict(os.environ)
        if (session := SparkSession.getActiveSession()) is not None:
            session.stop()


@pytest.fixture(scope="session")
def spark(environment: dict[str, str], folder: Path) -> SparkSession:
    """A session whose two executors are threads; each runs Python in another process."""
    return clusters.start("local[2]", folder)


@pytest.fixture
def serve(environment: dict[str, str]) -> Iterator[Callable[..., MockServer]]:
    """Starts the service with a world of its own, on a port of its own, with the one secret."""
    running: list[MockServer] = []

    def start(world: World, **options: Any) -> MockServer:
        server = MockServer(world, secret=SECRET, vendor="acme", **options)
        running.append(server)
        return server

    yield start
    for server in running:
        server.close()


def rows(table: Any) -> list[dict[str, Any]]:
    """Rows of Spark or of Arrow as dicts, in the order of their keys."""
    read = (table.toArrow() if isinstance(table, DataFrame) else table).to_pylist()
    return sorted(read, key=lambda row: (row.get("user_id", 0), row["id"]))


def held(client: Client, resource: str = "messages") -> list[dict[str, Any]]:
    """What one walk reads: the rows that each other way must give."""
    listing: Any = client.messages.all() if resource == "messages" else client.users.list()
    return rows(listing.to_arrow())


def land_here(client: Client, folder: Path, resource: Any = "messages") -> landing.Committed:
    """A committed run, without Spark."""
    planned = plan(client, resource=resource, shards=2)
    run_id = landing.begin(folder, planned)
    return landing.commit(folder, run_id, [landing.land(folder, shard) for shard in planned])
