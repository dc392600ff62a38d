"""A stream over landed runs: killed with its driver in the middle of a batch, and started again."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import clusters
import deltalake
import pyarrow.parquet
import pytest
from stream_driver import ONE_RUN_A_BATCH

from backread import ConfigurationError, LandingError, landing
from backread._client.columns import KEYS
from backread.integrations.spark import merge_into_delta, register
from backread.integrations.spark.columns import spark_schema
from backread.integrations.spark.landed import LandedStreamReader
from backread.integrations.spark.merging import _key
from backread.testing import MockServer, World
from conftest import held, land_here, rows

WORLD = World(seed=14, users=40, messages_per_user=(0, 60))


def change(world: World) -> None:
    """New users, new messages, and an edit."""
    world.add_users(2)
    for user_id in world.user_ids()[:5]:
        world.add_messages(user_id, 3)
    for user_id in world.user_ids():
        if ids := world.message_ids(user_id):
            world.edit_message(user_id, ids[0], body=f"edited at {world.total_messages}")
            break


def test_a_table_holds_each_key_once_with_what_is_newest(spark, serve, tmp_path):
    register(spark, check=False)
    server = serve(WORLD.copy())
    merge = merge_into_delta(tmp_path / "table")
    source = spark.read.format("backread").option("landing", str(tmp_path / "landing"))
    expected: dict[tuple[int, int], dict[str, Any]] = {}
    for number in (1, 2):
        with server.client() as client:
            run = land_here(client, tmp_path / "landing")
            for row in held(client):
                key = row["user_id"], row["id"]
                before = expected.get(key)
                if before is None or {**before, "run": 0} != {**row, "run": 0}:
                    expected[key] = {**row, "run": number}
        frame = source.option("run", run.number).load()
        for attempt in (1, 2):
            merge(frame, attempt)
        change(server.world)
    found = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table()
    assert rows(found) == [expected[key] for key in sorted(expected)]
    assert {row["run"] for row in rows(found)} == {1, 2}
    # What is older does not come back.
    merge(source.option("run", 1).load(), 3)
    assert rows(deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table()) == rows(found)


@pytest.mark.long
def test_a_driver_that_is_killed_goes_on_without_loss_or_repetition(environment, serve, tmp_path):
    server = serve(WORLD.copy())
    runs: list[landing.Committed] = []
    expected: dict[tuple[int, int], dict[str, Any]] = {}

    def land_one() -> None:
        with server.client() as client:
            runs.append(land_here(client, tmp_path / "landing"))
            expected.update({(row["user_id"], row["id"]): row for row in held(client)})
            # Runs of another resource have numbers too, and no rows for these queries.
            land_here(client, tmp_path / "landing", "users")
        change(server.world)

    command = [sys.executable, str(Path(__file__).with_name("stream_driver.py")), str(tmp_path)]
    log = (tmp_path / "log").open("wb")

    def go_on() -> None:
        for _ in range(3):
            begin = log.tell()
            done = subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=600)
            said = (tmp_path / "log").read_bytes()[begin:].decode()
            # Spark serializes a map that the session's other query writes to, and now and then an
            # executor cannot read its task.
            if not any(
                each in said for each in ("java.io.OptionalDataException", clusters.TOO_SLOW)
            ):
                break
        assert done.returncode == 0, said

    land_one()
    if not ONE_RUN_A_BATCH:
        go_on()
    land_one()
    # The second batch of each query is the run 3; run 2 is one of users.
    driver = subprocess.Popen(
        [*command, "stall"], env=environment, stdout=log, stderr=log, start_new_session=True
    )
    try:
        said = [tmp_path / "merged", tmp_path / "written"]
        clusters.until(
            lambda: all(file.exists() for file in said) or driver.poll() is not None,
            "both queries are in their second batch",
        )
        assert driver.poll() is None, (tmp_path / "log").read_text()
    finally:
        clusters.end(driver)

    land_one()
    go_on()

    every = rows(pyarrow.parquet.read_table(tmp_path / "all"))
    assert Counter(row["run"] for row in every) == {run.number: run.rows for run in runs}
    assert len({(row["run"], row["user_id"], row["id"]) for row in every}) == len(every)
    wanted = [expected[key] for key in sorted(expected)]
    one_each = rows(pyarrow.parquet.read_table(tmp_path / "newest"))
    assert [{name: row[name] for name in row if name != "run"} for row in one_each] == wanted
    table = rows(deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table())
    assert [{name: row[name] for name in row if name != "run"} for row in table] == wanted


def test_rows_are_told_apart_by_their_key_and_refused_without_it():
    for resource in ("users", "messages"):
        columns = spark_schema(resource, landed=True).names
        assert _key(columns) == KEYS[resource]
        upper = [name.upper() for name in columns]
        assert _key(upper) == tuple(name.upper() for name in KEYS[resource])
    for columns in (
        ["id", "body", "run"],
        # Of users or of messages, nobody knows.
        ["id", "name", "sender_type", "run"],
        ["user_id", "id", "body"],
    ):
        with pytest.raises(ConfigurationError, match=r"these rows have no (user_id|run|id)"):
            _key(columns)


def test_a_stream_reads_no_manifest_behind_it_and_never_goes_back(tmp_path):
    folder = tmp_path / "landed"
    with MockServer(World(seed=1, users=3)) as server, server.client() as client:
        for _ in range(3):
            land_here(client, folder, "users")
    options = {"landing": str(folder), "resource": "users"}
    reader = LandedStreamReader(options, {}, spark_schema("users", landed=True))
    # Each run has two files.
    assert len(reader.partitions({"run": 0}, {"run": 2})) == 4
    # Whoever opens these ends in an error.
    for number in (1, 2):
        (folder / "manifests" / f"{number:08}.json").write_text("damaged")
    assert reader.latestOffset({"run": 2}) == {"run": 3}
    assert len(reader.partitions({"run": 2}, {"run": 3})) == 2
    folder.rename(tmp_path / "away")
    # As a restarted query finds it; the offset must not be committed.
    with pytest.raises(LandingError, match="read up to number 2; restore the folder"):
        reader._between(2, 0)
    with pytest.raises(LandingError, match="no longer has the runs 2"):
        reader._between(1, 2)
