"""Landing: shards in files of their own, and a manifest that makes a run of them whole."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backread import (
    ConnectError,
    LandingError,
    RateLimitError,
    ServerError,
    landing,
    plan,
)
from backread.landing.storage import Storage
from backread.testing import Lane, MockServer, World
from helpers.shards import expected

RESOURCES = ["users", "messages"]


@pytest.fixture
def lane(backread_server: MockServer) -> Any:
    with backread_server.lane(world=World(seed=5, users=120, messages_per_user=(0, 60))) as lane:
        yield lane


def land_all(lane: Lane, folder: Path, resource: Any = "messages", shards: int = 3) -> Any:
    with lane.client() as client:
        planned = plan(client, resource=resource, shards=shards)
        landing.begin(folder, planned)
        return planned, [landing.land(folder, shard) for shard in planned]


def rows(folder: Path, run: landing.Committed) -> Counter[tuple[int | None, int]]:
    table = landing.dataset(folder, run).to_table().to_pylist()
    return Counter((row.get("user_id"), row["id"]) for row in table)


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_committed_run_holds_each_row_once(lane, tmp_path, resource):
    planned, landed = land_all(lane, tmp_path, resource)
    assert landing.runs(tmp_path) == []
    run = landing.commit(tmp_path, planned.plan_id, landed)
    assert landing.runs(tmp_path) == [run]
    assert rows(tmp_path, run) == expected(lane.world, resource)
    assert (run.number, run.resource, run.rows) == (
        1,
        resource,
        expected(lane.world, resource).total(),
    )
    assert (run.report.certificate, run.report.distinct) == ("linked", run.rows)
    assert [(tmp_path / file).stat().st_size for file in run.files] == [one.size for one in landed]
    # Nothing is left of what was written on the way.
    assert not list(tmp_path.rglob("_*"))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 1 + 3 + 3 + 1
    assert not [path for path in files if lane.secret.encode() in path.read_bytes()]


def test_a_shard_landed_twice_counts_once(lane, tmp_path):
    planned, landed = land_all(lane, tmp_path)
    with lane.client() as client:
        again = [landing.land(tmp_path, shard, client=client) for shard in planned]
    assert not {one.file for one in landed} & {one.file for one in again}
    run = landing.commit(tmp_path, planned.plan_id, [*again, *landed])
    assert run.files == tuple(one.file for one in again)
    assert rows(tmp_path, run) == expected(lane.world, "messages")
    # Committed is committed, whoever says so again.
    assert landing.commit(tmp_path, planned.plan_id, landed) == run
    assert landing.runs(tmp_path) == [run]


def test_a_run_lacks_nothing_or_is_not_committed(lane, tmp_path):
    planned, landed = land_all(lane, tmp_path)
    with pytest.raises(LandingError, match=r"of its 3 shards, these were not landed: 0, 2"):
        landing.commit(tmp_path, planned.plan_id, landed[1:2])
    broken = tmp_path / landed[1].file
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-1])
    with pytest.raises(
        LandingError, match=r"is missing, or has another size.*; land shard 1 again"
    ):
        landing.commit(tmp_path, planned.plan_id, landed)
    broken.unlink()
    with pytest.raises(
        LandingError, match=r"is missing, or has another size.*; land shard 1 again"
    ):
        landing.commit(tmp_path, planned.plan_id, landed)
    assert landing.runs(tmp_path) == []
    broken.write_bytes(whole)
    assert landing.commit(tmp_path, planned.plan_id, landed).number == 1
    other, _ = land_all(lane, tmp_path)
    with pytest.raises(LandingError, match=f"was landed for the run {planned.plan_id}"):
        landing.commit(tmp_path, other.plan_id, landed)


def test_workers_need_the_folder_the_run_and_a_number(lane, tmp_path):
    with lane.client() as client:
        planned = plan(client, shards=3)
        run_id = landing.begin(tmp_path, planned)
        assert landing.begin(tmp_path, planned) == run_id
        assert landing.load_plan(tmp_path, run_id) == planned
        landed = [
            landing.land(tmp_path, landing.load_shard(tmp_path, run_id, index), client=client)
            for index in range(3)
        ]
    told = [landing.Landed.from_json(one.to_json()) for one in landed]
    assert told == landed
    assert max(len(one.to_json()) for one in landed) < 2_000
    assert landing.commit(tmp_path, run_id, told).rows == lane.world.total_messages


def test_commits_at_once_get_numbers_of_their_own(lane, tmp_path):
    prepared = [land_all(lane, tmp_path, shards=1) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(
            pool.map(lambda one: landing.commit(tmp_path, one[0].plan_id, one[1]), prepared)
        )
    runs.sort(key=lambda run: run.number)
    assert [run.number for run in runs] == [1, 2, 3, 4]
    assert landing.runs(tmp_path) == runs
    # Runs after a number are had without reading the others.
    (tmp_path / "manifests" / "00000001.json").write_text("damaged")
    assert landing.runs(tmp_path, after=1) == runs[1:]
    assert landing.runs(tmp_path, after=4) == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("messages: status(404); user: status(500)", ServerError),
        ("messages: reset()", ConnectError),
        ("messages: status(429, retry_after=30)", RateLimitError),
    ],
)
def test_a_reading_that_fails_leaves_nothing(lane, tmp_path, fault, error):
    with lane.client(max_retries=0) as client:
        planned = plan(client, shards=2)
        lane.fault(fault)
        # And it is not blamed on the folder.
        with pytest.raises(error):
            landing.land(tmp_path, planned[0], client=client)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


CHILD = """
import sys
from backread import landing
from backread.errors import BackreadError
folder, run_id = sys.argv[1:]
landing.land(folder, landing.load_shard(folder, run_id, 0))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system does not kill so")
def test_a_worker_that_is_killed_leaves_what_nobody_reads(lane, tmp_path):
    with lane.client() as client:
        planned = plan(client, shards=2)
        landing.begin(tmp_path, planned)
        middle = threading.Event()
        lane.fault("messages every=20: stall()")
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path), planned.plan_id],
            env={**os.environ, "BACKREAD_API_SECRET": lane.secret},
        )
        while lane.calls("messages").count < 20:
            assert child.poll() is None
            middle.wait(0.01)
        child.kill()
        child.wait()
        lane.clear_faults()
        assert not list(tmp_path.rglob("attempt=*"))
        landed = [landing.land(tmp_path, shard) for shard in planned]
    run = landing.commit(tmp_path, planned.plan_id, landed)
    assert rows(tmp_path, run) == expected(lane.world, "messages")


def test_a_uri_is_a_folder_too(lane, tmp_path):

    planned, landed = land_all(lane, tmp_path.as_uri())  # type: ignore[arg-type]
    run = landing.commit(tmp_path.as_uri(), planned.plan_id, landed)
    assert landing.runs(str(tmp_path)) == [run]
    assert rows(tmp_path.as_uri(), run) == expected(lane.world, "messages")  # type: ignore[arg-type]


def test_what_cannot_be_used_is_said(lane, tmp_path):
    with pytest.raises(LandingError, match=r"has no run=20260101T000000Z-0/plan.json; begin"):
        landing.load_plan(tmp_path, "20260101T000000Z-0")
    with pytest.raises(ValueError, match="a run id is the result of begin"):
        landing.load_plan(tmp_path, "../other")
    with pytest.raises(LandingError, match="pass a path, or a URI that pyarrow supports"):
        landing.runs("nothing://here")
    for keys in ("s3://KEY:hidden@bucket/chats", "s3://KEY:a@b:hidden@bucket/chats"):
        with pytest.raises(LandingError, match="URI for bucket contains keys") as caught:
            landing.runs(keys)
        assert "hidden" not in str(caught.value)
    planned, landed = land_all(lane, tmp_path)
    landing.commit(tmp_path, planned.plan_id, landed)
    with pytest.raises(LandingError, match=r"has no run=.*shard=00007"):
        landing.load_shard(tmp_path, planned.plan_id, 7)
    [manifest] = (tmp_path / "manifests").iterdir()
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "format": 9}))
    with pytest.raises(LandingError, match="its format is not 1; upgrade"):
        landing.runs(tmp_path)
    manifest.write_text("{}")
    with pytest.raises(LandingError, match="damaged"):
        landing.runs(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(LandingError, match="cannot be created"):
        landing.begin(blocked, planned)


def test_a_run_whose_files_are_elsewhere_is_said(lane, tmp_path):
    planned, landed = land_all(lane, tmp_path)
    run = landing.commit(tmp_path, planned.plan_id, landed)
    with pytest.raises(LandingError, match="of run 1 is missing; check that this is the folder"):
        landing.dataset(tmp_path / "other", run)


def test_a_file_in_a_store_is_there_in_full_or_not_at_all(tmp_path):
    """Where there are no hard links; such a store is a local one here."""
    storage = Storage(tmp_path)
    storage.is_local = False
    storage.make_folder("manifests")

    def interrupted() -> None:
        with storage.fresh("manifests/1.json") as path:
            Path(path).write_text("{")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert storage.names("manifests") == []
    assert storage.create("manifests/1.json", "{}")
    assert not storage.create("manifests/1.json", "[]")
    assert storage.read("manifests/1.json") == b"{}"
    assert storage.names("manifests") == ["1.json"]


def test_rows_are_told_while_they_are_landed(lane, tmp_path):
    with lane.client() as client:
        [shard] = plan(client, shards=1)
        landing.begin(tmp_path, plan(client, shards=1))
        told: list[int] = []
        landed = landing.land(tmp_path, shard, client=client, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == landed.rows
