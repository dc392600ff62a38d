"""A real scheduler with LocalExecutor, whose tasks fork; some are killed, some wait, some end.

One Airflow serves all tests of this file. Each has a lane of the mock, a connection and a DAG.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import metadata
from pathlib import Path

import pytest
from components import Airflow, running, until
from dag_files import dag_file
from held import messages_landed, messages_of, mirror_holds

from backread import landing
from backread.testing import Lane, MockServer, World

USERS = 200
BEGUN = "run=*/shard=00001/.*.unfinished"
NAMES = ("killed", "landed", "waits", "defers", "stopped", "sensed", "down", "refused")


def dags(home: Path) -> dict[str, str]:
    """The DAG of each test; its connection has its name."""
    return {
        "killed": f"""
            BackreadSyncOperator(
                task_id="chats", mirror="{home}/killed", backread_conn_id="killed",
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
        "defers": f"""
            BackreadSyncOperator(
                task_id="chats", mirror="{home}/defers", backread_conn_id="defers",
                longest_wait=1, deferrable=True,
            )
        """,
        "stopped": f"""
            BackreadSyncOperator(
                task_id="chats", mirror="{home}/stopped", backread_conn_id="stopped",
                report_url="https://reports.example.com/{{{{ dag.dag_id }}}}.html",
            )
        """,
        "sensed": """
            NewMessagesSensor(
                task_id="wait", backread_conn_id="sensed", poke_interval=1, timeout=120,
                deferrable=True,
            )
        """,
        **{
            name: f"""
            for deferrable in (True, False):
                NewMessagesSensor(
                    task_id="deferred" if deferrable else "poked", backread_conn_id="{name}",
                    since="2100-01-01", poke_interval=1, timeout={seconds}, soft_fail=True,
                    retries=2, deferrable=deferrable,
                )
            """
            for name, seconds in {"down": 15, "refused": 900}.items()
        },
    }


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
        with running(airflow_home, os.environ) as started:
            for name, lane in lanes.items():
                started.connect(name, lane, max_concurrency=4)
            yield started


def asked(lane: Lane) -> int:
    """How many message lists the lane was asked for."""
    return lane.counts().get("messages", 0)


def test_a_killed_sync_is_resumed_by_the_retry(airflow, lanes):
    lane = lanes["killed"]
    # 40 lists a second, of which what the last two seconds brought is not committed yet.
    lane.fault("messages: latency(100)")
    run = airflow.trigger("killed")
    until(lambda: asked(lane) > USERS * 0.7, "most lists read")
    lock = airflow.home / "killed" / "sync.lock"
    os.kill(json.loads(lock.read_text())["pid"], signal.SIGKILL)
    assert airflow.success_of("killed", run)["chats"]["try_number"] == 2
    assert mirror_holds(airflow.home / "killed", lane.world)
    summary = airflow.value("killed", run, "chats")
    assert summary["resumed"]
    assert asked(lane) < USERS + 110
    [event] = airflow.events("killed")
    assert event["uri"] == f"file://{airflow.home}/killed"
    assert event["extra"] == summary
    assert summary["lists_by_certificate"] == {"snapshot": USERS}


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
    waiting = {"waits": "up_for_reschedule", "defers": "deferred"}
    runs = {}
    for name in waiting:
        last = lanes[name].world.user_ids()[-1]
        # Airflow fails a task that is queued again before its executor has said that it ended.
        lanes[name].fault(f"messages user={last}: status(429, retry_after=15) x1")
        runs[name] = airflow.trigger(name)
    for name, state in waiting.items():
        until(
            lambda name=name, state=state: (
                airflow.tasks(name, runs[name])["chats"]["state"] == state
            ),
            f"a task {state}",
        )
    for name in waiting:
        assert airflow.success_of(name, runs[name])["chats"]["try_number"] == 1
        assert airflow.value(name, runs[name], "chats")["resumed"]
        assert mirror_holds(airflow.home / name, lanes[name].world)
        # All that was read before the wait was committed, and is not asked for again.
        assert asked(lanes[name]) < USERS + 5


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


def test_the_triggerer_looks_for_new_messages(airflow, lanes):
    lane = lanes["sensed"]
    run = airflow.trigger("sensed")
    until(lambda: airflow.tasks("sensed", run)["wait"]["state"] == "deferred", "a deferred task")
    looks = lane.counts()["users"]
    until(lambda: lane.counts()["users"] > looks + 4, "looks by the triggerer")
    assert airflow.tasks("sensed", run)["wait"]["state"] == "deferred"
    user_id, now = lane.world.user_ids()[3], datetime.now(UTC).isoformat(timespec="milliseconds")
    [message_id] = lane.world.add_messages(user_id, 1)
    lane.world.edit_message(user_id, message_id, created_at=now)
    lane.world.edit_user(user_id, online_at=now)
    airflow.success_of("sensed", run)
    found = airflow.value("sensed", run, "wait")
    assert found["user_id"] == user_id
    assert datetime.fromisoformat(found["created_at"]) == datetime.fromisoformat(now)


def test_a_sensor_ends_alike_in_the_worker_and_in_the_triggerer(airflow, lanes):
    """A service that is down is waited for until the timeout, a wrong secret is not."""
    lanes["down"].fault("users: status(500)")
    runs = {name: airflow.trigger(name) for name in ("down", "refused")}
    # The first check of each is the worker's.
    until(
        lambda: (
            {
                name: each["state"]
                for name, each in airflow.tasks("refused", runs["refused"]).items()
            }
            == {"deferred": "deferred", "poked": "running"}
        ),
        "a sensor in the triggerer and one in a worker",
    )
    lanes["refused"].fault("users: status(401)")
    for name, state in {"down": "skipped", "refused": "failed"}.items():
        tasks = airflow.ended(name, runs[name])
        assert {each["state"] for each in tasks.values()} == {state}, tasks
        assert [each["try_number"] for each in tasks.values()] == [1, 1]
    for task in ("deferred", "poked"):
        log = airflow.logs("down", task)
        assert log.count("Check failed (") > 1
        assert "timeout" in log
        assert "the connection 'refused': GET /external/users" in airflow.logs("refused", task)


def test_the_form_has_the_fields(airflow):
    """Before the button: Airflow 3.1 has the fields only where no connection was tested yet."""
    hooks = airflow.ask("GET", "/ui/connections/hook_meta")
    [hook] = [each for each in hooks if each["connection_type"] == "backread"]
    assert hook["standard_fields"]["password"]["title"] == "API secret"
    assert hook["standard_fields"]["host"]["title"] == "Base URL"
    assert not (hook["standard_fields"]["port"] or {}).get("hidden")
    assert {"vendor", "timeout", "rate_limit", "proxy"} <= set(hook["extra_fields"])


def test_the_test_button(airflow, lanes):
    lane = lanes["sensed"]
    extra = {"vendor": lane.vendor, "timeout": 5}

    def tested(**fields: object) -> tuple[bool, str]:
        sent = {"host": lane.url, "password": lane.secret, "extra": extra, **fields}
        answer = airflow.ask("POST", "/api/v2/connections/test", airflow.connection("new", **sent))
        return answer["status"], answer["message"]

    assert tested() == (True, f"{lane.url} answers; number of users: {USERS}")
    done, message = tested(password="mock_secret_that_is_wrong")
    assert not done
    assert "401" in message
    assert "mock_secret_that_is_wrong" not in message
    done, message = tested(extra={**extra, "rate_limt": 3})
    assert not done
    assert "rate_limt" in message


def test_the_page_of_providers_leads_to_the_documentation(airflow):
    found = airflow.ask("GET", "/api/v2/providers?limit=100")["providers"]
    [provider] = [each for each in found if each["package_name"] == "backread"]
    [url] = metadata("backread").get_all("Project-URL", [])
    assert provider["documentation_url"] == url.partition(", ")[2]


def test_no_secret_is_in_a_file_of_airflow(airflow, lanes):
    """What all the tests before this one logged, and the database."""
    files = [path for path in airflow.home.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" for path in files)
    assert airflow.home / "airflow.db" in files
    held = [
        str(path)
        for path in files
        for lane in lanes.values()
        if lane.secret.encode() in path.read_bytes()
    ]
    assert held == []
