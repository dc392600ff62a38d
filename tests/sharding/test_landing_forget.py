"""Forgetting a user in landing folders, together with the mirror."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from backread import LandingError, MirrorError, landing, plan
from backread._files.unfinished import Unfinished
from backread.mirror import Mirror
from backread.testing import Lane
from helpers.file_traces import state, traces

MARKS = ["name-Zoë-51c", "mail-Zoë-51c", "body-Zoë-51c"]


@pytest.fixture
def who(lane: Lane) -> int:
    """A user with texts of her own."""
    user_id = next(each for each in lane.world.user_ids() if lane.world.message_ids(each))
    lane.world.edit_user(user_id, name=MARKS[0], email=MARKS[1])
    lane.world.edit_message(user_id, lane.world.message_ids(user_id)[0], body=MARKS[2])
    return user_id


@pytest.fixture
def synced(mirror: Mirror, lane: Lane, who: int) -> Mirror:
    with lane.client() as client:
        mirror.sync(client)
    return mirror


def begun(lane: Lane, folder: Path, resource: Any) -> tuple[str, list[landing.Landed]]:
    with lane.client() as client:
        planned = plan(client, resource=resource, shards=3)
        run_id = landing.begin(folder, planned)
        return run_id, [landing.land(folder, shard) for shard in planned]


def rows(folder: Path) -> list[dict[str, Any]]:
    return landing.dataset(folder, landing.runs(folder)[-1]).to_table().to_pylist()


@pytest.mark.parametrize(("resource", "column"), [("users", "id"), ("messages", "user_id")])
def test_a_run_loses_the_rows_of_the_user_and_no_other(
    synced, lane, who, tmp_path, resource, column
):
    folder = tmp_path / "landed"
    run_id, landed = begun(lane, folder, resource)
    files = landing.commit(folder, run_id, landed).files
    before = rows(folder)
    kept = [row for row in before if row[column] != who]
    assert traces(folder, *MARKS)

    report = synced.forget(who, landings=[folder])

    assert traces(folder, *MARKS) == traces(synced.folder, *MARKS) == []
    assert rows(folder) == kept
    [run] = landing.runs(folder)
    of_files = [pyarrow.parquet.read_metadata(folder / name).num_rows for name in files]
    assert (run.files, run.rows, len(kept)) == (files, len(kept), sum(of_files))
    assert (report.landing_rows, report.landing_files) == (len(before) - len(kept), 1)
    # Committing again returns the earlier commit.
    assert landing.commit(folder, run_id, landed) == run
    assert traces(folder, *MARKS) == []


def test_what_is_landed_but_not_committed_loses_the_rows_too(synced, lane, who, tmp_path):
    folder = tmp_path / "landed"
    run_id, landed = begun(lane, folder, "messages")
    assert traces(folder, *MARKS)
    synced.forget(who, landings=[folder])
    assert traces(folder, *MARKS) == []
    with pytest.raises(LandingError, match=r"land shard \d again"):
        landing.commit(folder, run_id, landed)


def test_a_user_who_is_only_landed_is_known(synced, lane, tmp_path):
    [who] = lane.world.add_users(1)
    folder = tmp_path / "landed"
    landing.commit(folder, *begun(lane, folder, "users"))
    with pytest.raises(MirrorError, match="holds nothing of user"):
        synced.forget(who)
    assert synced.forget(who, landings=[folder]).landing_rows == 1


def test_a_removal_that_was_killed_before_the_manifest_is_completed(synced, lane, who, tmp_path):
    folder = tmp_path / "landed"
    landing.commit(folder, *begun(lane, folder, "users"))
    synced.forget(who, landings=[folder])
    manifest = folder / "manifests" / "00000001.json"
    expected = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(expected | {"rows": expected["rows"] + 1}))
    synced.forget(who, landings=[folder])
    assert json.loads(manifest.read_text()) == expected


def test_a_folder_that_is_no_landing_is_refused_before_anything_changes(
    synced, lane, who, tmp_path
):
    folder = tmp_path / "landed"
    landing.commit(folder, *begun(lane, folder, "users"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "notes.txt").write_text("mine")
    before = state(tmp_path)
    for other in (elsewhere, tmp_path / "none", synced.folder):
        with pytest.raises(LandingError, match="is not a landing folder"):
            synced.forget(who, landings=[folder, other])
    with pytest.raises(TypeError, match="landings must be a list of folders"):
        synced.forget(who, landings=str(folder))
    assert state(tmp_path) == before


def test_a_worker_that_is_landing_is_said_and_a_killed_one_s_file_removed(
    synced, lane, who, tmp_path
):
    folder = tmp_path / "landed"
    landing.commit(folder, *begun(lane, folder, "messages"))
    shard = (folder / landing.runs(folder)[0].files[0]).parent
    left = shard / ".attempt.parquet.0123456789abcdef.unfinished"
    left.write_text(MARKS[2])
    before = state(synced.folder)
    with Unfinished(shard / "attempt=0.parquet") as unfinished:
        unfinished.file.write(b"rows")
        with pytest.raises(LandingError, match="is being written; wait until all workers"):
            synced.forget(who, landings=[folder])
        assert state(synced.folder) == before
    (shard / "attempt=0.parquet").unlink()
    synced.forget(who, landings=[folder])
    assert traces(folder, *MARKS) == []
    assert not left.exists()
