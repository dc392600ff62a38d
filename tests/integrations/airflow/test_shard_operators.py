"""A plan, its shards and their commit, in one process by ``DAG.test``."""

import json
from typing import Any

import pytest
from dag_files import extras_of, states, value_of
from held import messages_landed, messages_of

from backread import landing, plan
from backread.errors import LandingError
from backread.integrations.airflow import BackreadCommitOperator
from backread.integrations.airflow.names import AirflowException
from backread.integrations.airflow.shards import CommitSummary


def test_a_shard_goes_on_where_it_was_after_each_wait(run, lane, connect, tmp_path):
    connect(lane, max_concurrency=1)
    for user_id in lane.world.user_ids()[::6]:
        lane.fault(f"messages user={user_id}: status(429, retry_after=0) x1")
    done = run(
        "shard_waits",
        f"""
        plan = BackreadPlanOperator(task_id="plan", folder="{tmp_path}", shards=1)
        shards = BackreadShardOperator.partial(task_id="shard").expand(shard=plan.output)
        BackreadCommitOperator(task_id="commit", folder="{tmp_path}", landed=shards.output)
        """,
    )
    assert set(states(done).values()) == {"success"}
    assert messages_landed(tmp_path) == messages_of(lane.world)
    # Each list once, and each of those that were refused once more.
    assert lane.counts()["messages"] == 70


def test_plan_shards_commit(run, lane, connect, tmp_path):
    connect(lane, rate_limit=2_000)
    done = run(
        "by_shards",
        f"""
        plan = BackreadPlanOperator(task_id="plan", folder="{tmp_path}", shards=2)
        shards = BackreadShardOperator.partial(task_id="shard").expand(shard=plan.output)
        BackreadCommitOperator(
            task_id="commit", folder="{tmp_path}", landed=shards.output, require_certificate=True
        )
        """,
    )
    assert set(states(done).values()) == {"success"}
    assert messages_landed(tmp_path) == messages_of(lane.world)
    summary = value_of(done, "commit")
    assert (summary["files"], summary["rows"]) == (2, lane.world.total_messages)
    assert summary["rows_read"] >= summary["rows"]
    assert summary.keys() == CommitSummary.__annotations__.keys()
    assert extras_of("by_shards") == [(f"file://{tmp_path}", summary)]


def test_nothing_is_committed_without_a_certificate_that_is_required(run, lane, connect, tmp_path):
    connect(lane)
    lane.dialect = "total=null"
    done = run(
        "doubtful",
        f"""
        plan = BackreadPlanOperator(task_id="plan", folder="{tmp_path}", shards=1)
        shards = BackreadShardOperator.partial(task_id="shard").expand(shard=plan.output)
        BackreadCommitOperator(
            task_id="commit", folder="{tmp_path}", landed=shards.output, require_certificate=True
        )
        """,
    )
    assert states(done) == {"plan": "success", "shard[0]": "success", "commit": "failed"}
    assert not list(tmp_path.glob("manifests/*"))


def test_a_missing_shard_is_named_and_the_first_landing_of_each_is_judged(lane, tmp_path):
    with lane.client() as client:
        run_id = landing.begin(tmp_path, plan(client, shards=2))
        sure = [
            landing.land(tmp_path, landing.load_shard(tmp_path, run_id, index), client=client)
            for index in range(2)
        ]
        lane.dialect = "total=null"
        shard = landing.load_shard(tmp_path, run_id, 1)
        doubtful = landing.land(tmp_path, shard, client=client)

    def commit(*landed: landing.Landed) -> Any:
        task = BackreadCommitOperator(
            task_id="commit",
            folder=str(tmp_path),
            landed=[json.loads(each.to_json()) for each in landed],
            require_certificate=True,
            outlets=[],
        )
        return task.execute({"outlet_events": {}})

    with pytest.raises(LandingError, match="not landed: 1; land them"):
        commit(sure[0])
    with pytest.raises(AirflowException, match="nothing was committed"):
        commit(sure[0], doubtful, sure[1])
    assert commit(*sure, doubtful)["certificate"] != "uncertified"
