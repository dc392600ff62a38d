"""Spark reads the snapshot of a mirror by path, also while syncs replace it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from backread import Mirror
from backread.testing import MockServer, World

TABLES = ("users", "messages", "lists", "rejects", "runs", "forgotten")
GONE = ("FILE_NOT_EXIST", "PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "FileNotFound")


@pytest.fixture
def server(serve: Callable[..., MockServer]) -> MockServer:
    return serve(World(seed=12, users=40, messages_per_user=(1, 30)))


def sync(mirror: Mirror, server: MockServer) -> None:
    with server.client() as client:
        mirror.sync(client)


def count(spark: SparkSession, snapshot: Path, table: str = "messages") -> int:
    return spark.read.parquet(str(snapshot / table)).count()


def test_each_table_has_the_rows_of_the_mirror(spark, server, tmp_path):
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    current = mirror.folder / "published" / "current"
    for table in TABLES:
        [(expected,)] = mirror.sql(f"SELECT count(*) FROM {table}").fetchall()
        assert count(spark, current, table) == expected, table
    messages = spark.read.parquet(str(current / "messages"))
    assert messages.select("user_id", "id").distinct().count() == messages.count()
    user = server.world.user_ids()[7]
    assert messages.filter(f"user_id = {user}").count() == len(mirror.conversation(user)) > 0


def test_read_during_syncs_is_one_version_or_a_clear_error(spark, server, tmp_path):
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    totals = {server.world.total_messages}
    ended = threading.Event()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            while not ended.is_set():
                server.world.add_messages(server.world.user_ids()[0], 1)
                totals.add(server.world.total_messages)
                sync(mirror, server)
        except BaseException as error:
            failures.append(error)

    current = mirror.folder / "published" / "current"
    thread = threading.Thread(target=write)
    thread.start()
    seen: set[int] = set()
    try:
        for _ in range(8):
            # Resolved, a read never fails.
            seen.add(count(spark, current.resolve()))
            try:
                seen.add(count(spark, current))
            except (PySparkException, Py4JJavaError) as error:
                # Without any file, there is no schema.
                if not any(each in str(error) for each in GONE):
                    raise
    finally:
        ended.set()
        thread.join()
    assert not failures
    assert seen <= totals
    assert len(seen) > 2
