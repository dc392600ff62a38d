"""The blocks of README.md and docs/airflow.md that are for Airflow, run in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dag_files import states
from moved import DagBag

from backread import Mirror, landing
from backread.testing import Lane
from conftest import Connect
from documents import ROOT, Block, Document, of_kind

BLOCKS = [
    block for page in ("README.md", "docs/airflow.md") for block in Document(ROOT / page).blocks
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for /srv: the blocks of a page build on one another."""
    return tmp_path_factory.mktemp("srv")


@of_kind(BLOCKS, "airflow")
def test_block(
    block: Block, airflow_home: Path, folder: Path, lane: Lane, connect: Connect
) -> None:
    connect(lane)
    code = re.sub(r"/srv\b", str(folder), block.code)
    if "NewMessagesSensor" in code:
        # It is to find something, not to wait for an hour.
        latest = "select user_id from conversations order by last_message_at desc limit 1"
        [(user_id,)] = Mirror(folder / "chats").sql(latest).fetchall()
        lane.world.add_messages(user_id, 1)
    if "DAG" not in code and "@dag" not in code:
        block.execute(code)
        return
    path = airflow_home / "dags" / f"{block.module}.py"
    path.write_text(code)
    try:
        bag = DagBag(path)
        assert not bag.import_errors
        assert bag.dags
        # What an asset schedules comes after what fills it.
        for dag in sorted(bag.dags.values(), key=lambda dag: not isinstance(dag.schedule, str)):
            assert set(states(dag.test()).values()) == {"success"}
    finally:
        path.unlink()
    if "BackreadSyncOperator" in code:
        [(held,)] = Mirror(folder / "chats").sql("select count(*) from messages").fetchall()
        assert held == lane.world.total_messages
    if "BackreadCommitOperator" in code:
        [run] = landing.runs(folder / "landed")
        assert run.rows == lane.world.total_messages


def test_there_are_blocks_of_both_pages() -> None:
    assert {block.page.name for block in BLOCKS if block.kind == "airflow"} == {
        "README.md",
        "airflow.md",
    }
