"""A real scheduler with LocalExecutor, whose tasks fork; some are killed, some wait, some end.

One Airflow serves all tests of this file. Each has a lane of the mock, a connection and a DAG; the
DAGs of docs/how-to/airflow.md run there too.
"""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
from components import (
    Airflow,
    dag_file,
    messages_landed,
    messages_of,
    mirror_holds,
    running,
    until,
)

from backread import landing
from backread.testing import Lane, MockServer, World
from helpers.doc_pages import ROOT, Block, Document

USERS = 200
BEGUN = "run=*/shard=00001/.*.unfinished"
NAMES = ("killed", "landed", "waits", "stopped", "masked", "backread_default")

BLOCKS = [
    block for block in Document(ROOT / "docs/how-to/airflow.md").blocks if block.kind == "airflow"
]
DAG_ID = re.compile(r"\bDAG\(\s*\"(\w+)\"|^@dag\(.*\)\ndef (\w+)", re.MULTILINE)


def dags(home: Path) -> dict[str, str]:
    """The DAG of each test; its connection has its name."""
    return {
        "killed": f"""
            dag.params = {{"days": None, "strict": False}}
            BackreadSyncOperator(
                task_id="chats", mirror="{home}/{{{{ dag.dag_id }}}}",
                backread_conn_id="{{{{ var.value.get('conn', 'killed') }}}}",
                mode="{{{{ 'full' if dag_run.run_type == 'manual' else 'incremental' }}}}",
                max_staleness="{{{{ params.days }}}}", max_seconds="{{{{ 24 * 3600 }}}}",
                require_certificate="{{{{ params.strict }}}}", outlets=[AssetAlias("chats")],
                retries=1, retry_delay=timedelta(seconds=1),
            )
        """,
        "landed": f"""
            def note(context):
                from os import getpid
                from pathlib import Path
                index = context["ti"].map_index
                Path(f"{home}/pid-{{index}}").write_text(str(getpid()))

            plan = BackreadPlanOperator(
                task_id="plan", folder="{home}/landed", backread_conn_id="landed",
                shards=3, workers=3,
            )
            shards = BackreadShardOperator.partial(
                task_id="shard", backread_conn_id="landed", pre_execute=note,
                retries=1, retry_delay=timedelta(seconds=1),
            ).expand(shard=plan.output)
            BackreadCommitOperator(task_id="commit", folder="{home}/landed", landed=shards.output)
        """,
        "waits": f"""
            BackreadSyncOperator(
                task_id="chats", mirror="{home}/waits", backread_conn_id="waits", longest_wait=1,
            )
        """,
        "stopped": f"""
            BackreadSyncOperator(
                task_id="chats", mirror="{home}/stopped", backread_conn_id="stopped",
                report_url="https://reports.example.com/{{{{ dag.dag_id }}}}.html",
            )
        """,
        "masked": """
            @task
            async def show():
                import os
                async with BackreadHook("masked").get_async_client() as client:
                    print("It is", os.environ["BACKREAD_API_SECRET"])
                    return (await client.users.page(limit=1)).total
            show()
        """,
    }


def place(home: Path, block: Block) -> Path:
    """The folder of a block, in place of /srv."""
    return home / "srv" / block.module


def code_of(home: Path, block: Block) -> str:
    """A block's code, with its folder."""
    return re.sub(r"/srv\b", str(place(home, block)), block.code)


@pytest.fixture(scope="module")
def lanes() -> Iterator[dict[str, Lane]]:
    """A lane for each test, of a world of its own."""
    with MockServer() as server, ExitStack() as opened:
        yield {
            name: opened.enter_context(
                server.lane(name=name, world=World(seed=7, users=USERS, messages_per_user=(0, 30)))
            )
            for name in NAMES
        }


@pytest.fixture(scope="module")
def airflow(airflow_home: Path, lanes: dict[str, Lane]) -> Iterator[Airflow]:
    with ExitStack() as written:
        for name, body in dags(airflow_home).items():
            written.enter_context(dag_file(airflow_home, name, body))
        for block in BLOCKS:
            if DAG_ID.search(block.code):
                file = airflow_home / "dags" / f"{block.module}.py"
                file.write_text(code_of(airflow_home, block), encoding="utf-8")
        with running(airflow_home, {**os.environ, **environment(lanes)}) as started:
            yield started


def environment(lanes: dict[str, Lane]) -> dict[str, str]:
    """The connections that are not in Airflow's database, and the service that "masked" reads."""
    connections = {
        name: {
            "conn_type": "backread",
            "host": lane.url,
            "password": lane.secret,
            "extra": {"vendor": lane.vendor, "max_concurrency": 4},
        }
        for name, lane in lanes.items()
        if name != "waits"
    }
    masked = lanes["masked"]
    connections["masked"] = {"conn_type": "backread", "extra": {"vendor": masked.vendor}}
    return {
        **{f"AIRFLOW_CONN_{name.upper()}": json.dumps(each) for name, each in connections.items()},
        "BACKREAD_BASE_URL": masked.url,
        "BACKREAD_API_SECRET": masked.secret,
    }


def asked(lane: Lane) -> int:
    """The number of requests for lists of messages."""
    return lane.counts().get("messages", 0)


def test_a_killed_sync_is_resumed_by_the_retry_and_its_arguments_are_templates(airflow, lanes):
    lane = lanes["killed"]
    # 40 lists a second, of which what the last two seconds brought is not committed yet.
    lane.fault("messages: latency(100)")
    run = airflow.trigger("killed")
    until(lambda: asked(lane) > USERS * 0.7, "most lists read")
    lock = airflow.home / "killed" / "sync.lock"
    # "process 4321 on …"
    os.kill(int(lock.read_text().split()[1]), signal.SIGKILL)
    assert airflow.success_of("killed", run)["chats"]["try_number"] == 2
    assert mirror_holds(airflow.home / "killed", lane.world)
    summary = airflow.value("killed", run, "chats")
    assert summary["resumed"]
    assert asked(lane) < USERS + 110
    [event] = airflow.events("killed")
    assert event["uri"] == f"file://{airflow.home}/killed"
    assert event["extra"] == summary
    assert summary["mode"] == "full"
    assert summary["run"]["lists_by_certificate"] == {"snapshot": USERS}


def test_a_killed_shard_is_landed_by_the_retry(airflow, lanes):
    lane, folder = lanes["landed"], airflow.home / "landed"
    lane.fault("messages: latency(100)")
    run = airflow.trigger("landed")
    until(lambda: list(folder.glob(BEGUN)), "the beginning of a file")
    before = asked(lane)
    until(lambda: asked(lane) > before + 10, "some lists read")
    os.kill(int((airflow.home / "pid-1").read_text()), signal.SIGKILL)
    tasks = airflow.success_of("landed", run)
    tries = {name: each["try_number"] for name, each in tasks.items()}
    assert tries == {"plan": 1, "shard[0]": 1, "shard[1]": 2, "shard[2]": 1, "commit": 1}
    assert messages_landed(folder) == messages_of(lane.world)
    # What the killed one had written was removed by the try after it.
    assert list(folder.glob(BEGUN)) == []
    summary = airflow.value("landed", run, "commit")
    [committed] = landing.runs(folder)
    assert (summary["rows"], summary["files"]) == (committed.rows, 3)
    # That of the list of users, which has more than one page.
    assert summary["certificate"] == "linked"
    assert summary["lists_by_certificate"] == {"snapshot": USERS}
    assert [event["extra"] for event in airflow.events("landed")] == [summary]


def test_a_long_wait_frees_the_worker_and_costs_no_retry(airflow, lanes):
    lane = lanes["waits"]
    airflow.connect("waits", lane, max_concurrency=4)
    last = lane.world.user_ids()[-1]
    # Airflow fails a task that is queued again before its executor has said that it ended.
    lane.fault(f"messages user={last}: status(429, retry_after=15) x1")
    run = airflow.trigger("waits")
    until(
        lambda: airflow.tasks("waits", run)["chats"]["state"] == "up_for_reschedule",
        "a task that is up for reschedule",
    )
    assert airflow.success_of("waits", run)["chats"]["try_number"] == 1
    assert airflow.value("waits", run, "chats")["resumed"]
    assert mirror_holds(airflow.home / "waits", lane.world)
    # All that was read before the wait was committed, and is not requested again.
    assert asked(lane) < USERS + 5


def test_a_task_that_is_marked_as_failed_ends_and_keeps_what_it_committed(airflow, lanes):
    lane = lanes["stopped"]
    lane.fault("messages: latency(1000)")
    run = airflow.trigger("stopped")
    until(lambda: asked(lane) > 8, "some lists read")
    path = f"/api/v2/dags/stopped/dagRuns/{run}/taskInstances/chats"
    airflow.ask("PATCH", path, {"new_state": "failed"})
    lock = airflow.home / "stopped" / "sync.lock"
    until(lambda: not lock.read_bytes(), "a lock that was let go")
    assert airflow.tasks("stopped", run)["chats"]["state"] == "failed"
    until(lambda: "ended by a signal" in airflow.logs("stopped"), "the log of its end")
    lane.clear_faults()
    before = asked(lane)
    run = airflow.trigger("stopped")
    airflow.success_of("stopped", run)
    assert airflow.value("stopped", run, "chats")["resumed"]
    assert asked(lane) - before < USERS
    assert mirror_holds(airflow.home / "stopped", lane.world)
    links = airflow.ask("GET", f"/api/v2/dags/stopped/dagRuns/{run}/taskInstances/chats/links")
    assert links["extra_links"] == {"Report": "https://reports.example.com/stopped.html"}


def test_the_dags_of_the_how_to_page(airflow, lanes):
    ids = [match[1] or match[2] for block in BLOCKS for match in DAG_ID.finditer(block.code)]
    # Airflow shows only one of two DAGs with the same id.
    assert len(ids) == len(set(ids)) >= 5
    for dag_id in ids:
        airflow.known(dag_id)
    # An asset starts this one.
    follows = "response_times"
    runs = {dag_id: airflow.trigger(dag_id) for dag_id in ids if dag_id != follows}
    for dag_id, run in runs.items():
        airflow.success_of(dag_id, run)
    until(lambda: airflow.runs(follows), "a run that an asset started")
    airflow.success_of(follows, airflow.runs(follows)[0]["dag_run_id"])
    world = lanes["backread_default"].world
    mirrors = [block for block in BLOCKS if "BackreadSyncOperator" in block.code]
    assert mirrors
    for block in mirrors:
        assert mirror_holds(place(airflow.home, block) / "chats", world)
    # The last block reads what the one before it landed.
    landed = place(airflow.home, BLOCKS[-2])
    BLOCKS[-1].execute(re.sub(r"/srv\b", str(landed), BLOCKS[-1].code))
    assert messages_landed(landed / "landed") == messages_of(world)


def test_the_secret_of_the_environment_is_masked_in_logs(airflow, lanes):
    run = airflow.trigger("masked")
    airflow.success_of("masked", run)
    assert airflow.value("masked", run, "show") == USERS
    assert "It is ***" in airflow.logs("masked")
    assert lanes["masked"].secret not in airflow.logs("masked")


def test_airflow_knows_the_provider(airflow_home):
    assert "backread" in ProvidersManager().providers
    hook = ProvidersManagerTaskRuntime().hooks["backread"]
    assert hook is not None
    assert (hook.hook_name, hook.connection_testable) == ("backread", True)


def test_no_secret_is_in_a_file_of_airflow(airflow, lanes):
    """Including the database and the logs of all tests before this one."""
    files = [path for path in airflow.home.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in files)
    assert airflow.home / "airflow.db" in files
    held = [
        str(path)
        for path in files
        for name, lane in lanes.items()
        # Airflow repeats what a task prints in the scheduler's output, without masking it.
        if name != "masked" and lane.secret.encode() in path.read_bytes()
    ]
    assert held == []
