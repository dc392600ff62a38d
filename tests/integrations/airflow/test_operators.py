"""The operators and the sensor in one process, by ``DAG.test``."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session
from dag_files import run_dag, states
from held import messages_landed, messages_of, mirror_holds
from moved import TaskDeferred

from backread import Mirror, landing, plan
from backread.errors import LandingError
from backread.integrations.airflow import BackreadCommitOperator, BackreadSyncOperator
from backread.integrations.airflow.names import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
)
from backread.integrations.airflow.shards import CommitSummary
from backread.integrations.airflow.sync import SyncSummary
from backread.testing import Lane
from conftest import Connect

Run = Callable[[str, str], Any]
BOTH = pytest.mark.parametrize("how", ["deferrable=True", "deferrable=False"])


@pytest.fixture
def run(airflow_home: Path) -> Run:
    return lambda name, body: run_dag(airflow_home, name, body)


def value_of(done: Any, task_id: str) -> Any:
    [instance] = [each for each in done.get_task_instances() if each.task_id == task_id]
    return instance.xcom_pull(task_ids=task_id)


def extras_of(dag_id: str) -> list[tuple[str, Any]]:
    """The URI and the extra of each asset event of a DAG."""
    with create_session() as session:
        events = session.query(AssetEvent).filter_by(source_dag_id=dag_id).all()
        return [(event.asset.uri, event.extra) for event in events]


def test_sync(run: Run, lane: Lane, connect: Connect, tmp_path: Path) -> None:
    connect(lane)
    done = run("sync", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats/")')
    assert states(done) == {"chats": "success"}
    assert mirror_holds(tmp_path / "chats", lane.world)
    summary = value_of(done, "chats")
    assert (summary["users"], summary["messages"]) == (60, lane.world.total_messages)
    assert (summary["users_stored"], summary["messages_stored"]) == (
        60,
        lane.world.total_messages,
    )
    assert summary.keys() == SyncSummary.__annotations__.keys()
    assert summary["certificate"] == "snapshot"
    assert extras_of("sync") == [(f"file://{tmp_path}/chats", summary)]


def test_folder_and_mode_are_templates_and_an_alias_gets_the_asset(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path
) -> None:
    conn_id = connect(lane, "chat_service")
    done = run(
        "templates",
        f"""
        BackreadSyncOperator(
            task_id="chats",
            mirror="{tmp_path}/{{{{ dag.dag_id }}}}",
            mode="{{{{ 'full' if dag_run.run_type == 'manual' else 'incremental' }}}}",
            backread_conn_id="{{{{ var.value.get('conn', '{conn_id}') }}}}",
            outlets=[AssetAlias("chats")],
        )
        """,
    )
    assert states(done) == {"chats": "success"}
    assert value_of(done, "chats")["mode"] == "full"
    assert mirror_holds(tmp_path / "templates", lane.world)
    [(uri, extra)] = extras_of("templates")
    assert uri == f"file://{tmp_path}/templates"
    assert extra["mode"] == "full"


def test_progress_is_logged_at_intervals(
    run: Run,
    lane: Lane,
    connect: Connect,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect(lane)
    body = f"""
    BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a")
    plan = BackreadPlanOperator(task_id="plan", folder="{tmp_path}/b", shards=1)
    BackreadShardOperator.partial(task_id="shard").expand(shard=plan.output)
    """
    run("quick", body)
    # It took no 30 seconds.
    assert "requests (" not in capsys.readouterr().out
    for module in ("sync", "shards"):
        monkeypatch.setattr(f"backread.integrations.airflow.{module}.SECONDS_BETWEEN_LINES", 0.0)
    run("told", body)
    shown = capsys.readouterr().out
    assert f"{lane.world.total_messages:,} messages, " in shown
    assert "60 of 60 lists" in shown
    assert f"shard 0: {lane.world.total_messages} rows so far" in shown


@pytest.mark.parametrize("native", [False, True])
def test_numbers_and_truths_may_be_templates(
    airflow_home: Path, lane: Lane, connect: Connect, tmp_path: Path, native: bool
) -> None:
    """With ``render_template_as_native_obj`` they come as what they are, otherwise as text."""
    connect(lane)
    lane.dialect = "total=null"
    params = {"strict": False, "shards": 2, "what": "users", "days": None}
    name = f"typed_{native}"
    done = run_dag(
        airflow_home,
        name,
        f"""
        dag.render_template_as_native_obj = {native}
        dag.params = {params}
        BackreadSyncOperator(
            task_id="chats", mirror="{tmp_path}/a",
            require_certificate="{{{{ params.strict }}}}", max_staleness="{{{{ params.days }}}}",
            full_every="{{{{ 24 * 3600 }}}}", full_every_runs="{{{{ params.shards }}}}",
        )
        plan = BackreadPlanOperator(
            task_id="plan", folder="{tmp_path}/b", resource="{{{{ params.what }}}}",
            shards="{{{{ params.shards }}}}", workers="{{{{ params.shards }}}}",
        )
        shards = BackreadShardOperator.partial(task_id="shard").expand(shard=plan.output)
        BackreadCommitOperator(
            task_id="commit", folder="{tmp_path}/b", landed=shards.output,
            require_certificate="{{{{ params.strict }}}}",
        )
        """,
    )
    assert set(states(done).values()) == {"success"}
    assert value_of(done, "commit")["resource"] == "users"


def test_a_rendered_argument_that_is_no_good_fails_at_once(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(lane)
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", retries=3'
    done = run("rendered", f'{sync}, max_staleness="{{{{ dag.dag_id }}}}")')
    assert states(done) == {"chats": "failed"}
    assert "max_staleness: it must be a number, not 'rendered'" in capsys.readouterr().out


def test_one_of_some_runs_is_full(run: Run, lane: Lane, connect: Connect, tmp_path: Path) -> None:
    connect(lane)
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", full_every'
    modes = [value_of(run("in_turn", f"{sync}_runs=2)"), "chats")["mode"] for _ in range(3)]
    assert modes == ["full", "incremental", "full"]
    daily = run("daily", f"{sync}=timedelta(days=1))")
    assert value_of(daily, "chats")["mode"] == "incremental"
    assert value_of(run("always", f"{sync}=0)"), "chats")["mode"] == "full"


def test_rows_without_a_certificate_fail_a_task_that_requires_one(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path
) -> None:
    connect(lane)
    lane.dialect = "total=null"
    done = run(
        "uncertified",
        f"""
        BackreadSyncOperator(
            task_id="strict", mirror="{tmp_path}/a", require_certificate=True, retries=2,
            retry_delay=timedelta(0),
        )
        BackreadSyncOperator(task_id="lenient", mirror="{tmp_path}/b")
        """,
    )
    assert states(done) == {"strict": "failed", "lenient": "success"}
    assert [uri for uri, _ in extras_of("uncertified")] == [f"file://{tmp_path}/b"]
    # What was read is kept all the same, and a retry would read it again.
    assert mirror_holds(tmp_path / "a", lane.world)
    assert Mirror(tmp_path / "a").sql("select count(*) from runs").fetchall() == [(1,)]


def test_short_waits_are_waited_out(run: Run, lane: Lane, connect: Connect, tmp_path: Path) -> None:
    connect(lane)
    lane.fault(f"messages user={lane.world.user_ids()[-1]}: status(429, retry_after=1) x1")
    done = run("short", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats")')
    assert states(done) == {"chats": "success"}
    assert value_of(done, "chats")["resumed"]
    assert mirror_holds(tmp_path / "chats", lane.world)


def test_a_service_that_only_asks_for_waits_is_given_up(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path
) -> None:
    connect(lane, max_concurrency=1)
    lane.fault("messages: status(429, retry_after=0)")
    done = run("given_up_sync", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a")')
    assert states(done) == {"chats": "failed"}
    # The first comes after the users, which are something new; then six with nothing.
    assert lane.counts()["messages"] == 7


def test_waits_with_something_read_between_them_are_not_counted(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path
) -> None:
    connect(lane, max_concurrency=1)
    for user_id in lane.world.user_ids()[::6]:
        lane.fault(f"messages user={user_id}: status(429, retry_after=0) x1")
    done = run("between", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a")')
    assert states(done) == {"chats": "success"}
    assert mirror_holds(tmp_path / "a", lane.world)


@BOTH
def test_a_wait_beyond_the_bound_fails_the_task(
    run: Run,
    lane: Lane,
    connect: Connect,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    how: str,
) -> None:
    connect(lane)
    lane.fault(f"messages user={lane.world.user_ids()[-1]}: status(429, retry_after=7200)")
    name = f"bound_{'True' in how}"
    body = f"""
    BackreadSyncOperator(
        task_id="chats", mirror="{tmp_path}/a", give_up_after=timedelta(hours=1), retries=3, {how}
    )
    """
    assert states(run(name, body)) == {"chats": "failed"}
    assert "given up: the service asks for a wait of 7200 s" in capsys.readouterr().out
    lane.clear_faults()
    before = lane.counts()["messages"]
    done = run(name, body)
    assert states(done) == {"chats": "success"}
    assert value_of(done, "chats")["resumed"]
    assert lane.counts()["messages"] - before < 60


class Rescheduled:
    """What a task instance says of the reschedules before it."""

    def __init__(self, first: datetime | None) -> None:
        self.first = first

    def get_first_reschedule_date(self, context: Any) -> datetime | None:
        return self.first


def test_the_bound_counts_from_the_first_of_all_reschedules(
    airflow_home: Path, lane: Lane, connect: Connect, tmp_path: Path
) -> None:
    connect(lane)
    lane.fault("users: status(429, retry_after=600)")
    now = datetime.now(UTC)

    def task(**arguments: Any) -> BackreadSyncOperator:
        return BackreadSyncOperator(
            task_id="chats", mirror=str(tmp_path / "a"), give_up_after=3600, **arguments
        )

    soon, late = now - timedelta(minutes=40), now - timedelta(minutes=55)
    with pytest.raises(AirflowRescheduleException):
        task().execute({"ti": Rescheduled(soon)})
    with pytest.raises(AirflowFailException, match="given up"):
        task().execute({"ti": Rescheduled(late)})
    with pytest.raises(TaskDeferred) as deferred:
        task(deferrable=True).resume({"ti": Rescheduled(None)}, began=soon.isoformat())
    assert deferred.value.kwargs == {"began": soon.isoformat()}
    with pytest.raises(AirflowFailException, match="given up"):
        task(deferrable=True).resume({"ti": Rescheduled(None)}, began=late.isoformat())
    lane.clear_faults()
    lane.fault("users: status(429, retry_after=4294967296)")
    unbound = BackreadSyncOperator(task_id="chats", mirror=str(tmp_path / "a"), give_up_after=None)
    with pytest.raises(AirflowRescheduleException) as rescheduled:
        unbound.execute({"ti": Rescheduled(late)})
    assert rescheduled.value.reschedule_date < now + timedelta(days=366)


def test_a_shard_goes_on_where_it_was_after_each_wait(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"extra": {"vendor": "other"}}, "the field vendor"),
        ({"host": "{url}/elsewhere"}, "the field host (Base URL)"),
        ({"password": "mock_another"}, "the field password (API secret)"),
    ],
)
def test_a_wrong_field_of_the_connection_is_named_and_not_retried(
    run: Run,
    lane: Lane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wrong: dict[str, Any],
    field: str,
) -> None:
    fields = {"host": lane.url, "password": lane.secret, "extra": {"vendor": lane.vendor}, **wrong}
    fields["host"] = fields["host"].format(url=lane.url)
    given = json.dumps({"conn_type": "backread", **fields})
    monkeypatch.setenv("AIRFLOW_CONN_BACKREAD_DEFAULT", given)
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", retries=2'
    done = run("wrong_field", f"{sync}, retry_delay=timedelta(0))")
    assert states(done) == {"chats": "failed"}
    shown = capsys.readouterr().out
    assert shown.count("AirflowFailException: the connection 'backread_default': GET ") == 1
    assert f"; correct {field}" in shown
    assert sum(lane.counts().values()) <= 1


def test_a_refused_secret_fails_at_once(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(lane)
    lane.fault("users: status(401)")
    done = run(
        "refused", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", retries=3)'
    )
    assert states(done) == {"chats": "failed"}
    shown = capsys.readouterr().out
    assert "401: it did not take the secret" in shown
    assert lane.secret not in shown


def test_a_folder_that_cannot_be_made_is_one_error(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(lane)
    (tmp_path / "file").touch()
    done = run("no_folder", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/file/a")')
    assert states(done) == {"chats": "failed"}
    shown = capsys.readouterr().out
    assert "cannot be made" in shown
    assert "choose another or change permissions" in shown
    assert "NotADirectoryError" not in shown


def test_a_task_that_took_too_long_keeps_what_it_committed(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(lane)
    lane.fault(f"messages user={lane.world.user_ids()[-1]}: stall()")
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats"'
    late = run("late", f"{sync}, execution_timeout=timedelta(seconds=5))")
    assert states(late) == {"chats": "failed"}
    assert "AirflowTaskTimeout" in capsys.readouterr().out
    lane.clear_faults()
    before = lane.counts()["messages"]
    again = run("again", f"{sync})")
    assert states(again) == {"chats": "success"}
    assert value_of(again, "chats")["resumed"]
    assert lane.counts()["messages"] - before < 60
    assert mirror_holds(tmp_path / "chats", lane.world)


def test_plan_shards_commit(run: Run, lane: Lane, connect: Connect, tmp_path: Path) -> None:
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


def test_nothing_is_committed_without_a_certificate_that_is_required(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path
) -> None:
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


def test_a_missing_shard_is_named_and_the_first_landing_of_each_is_judged(
    lane: Lane, tmp_path: Path
) -> None:
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


def write_now(lane: Lane) -> int:
    """A new message, of this moment; its user."""
    user_id, now = lane.world.user_ids()[3], datetime.now(UTC).isoformat(timespec="milliseconds")
    [message_id] = lane.world.add_messages(user_id, 1)
    lane.world.edit_message(user_id, message_id, created_at=now)
    lane.world.edit_user(user_id, online_at=now)
    return user_id


@pytest.mark.parametrize("how", ["deferrable=True", 'mode="reschedule"', 'mode="poke"'])
def test_the_sensor_finds_a_message_after_a_time(
    run: Run, lane: Lane, connect: Connect, how: str
) -> None:
    connect(lane)
    since = datetime.now(UTC) - timedelta(hours=1)
    user_id = write_now(lane)
    done = run(
        f"since_{how.partition('=')[0]}_{'poke' in how}",
        f'NewMessagesSensor(task_id="wait", since="{since.isoformat()}", {how})',
    )
    assert states(done) == {"wait": "success"}
    assert value_of(done, "wait")["user_id"] == user_id


@BOTH
def test_the_sensor_finds_what_a_mirror_does_not_hold(
    run: Run, lane: Lane, connect: Connect, tmp_path: Path, how: str
) -> None:
    connect(lane)
    mirror = Mirror(tmp_path / "chats")
    with lane.client() as client:
        mirror.sync(client)
    sensor = (
        f'NewMessagesSensor(task_id="wait", mirror="{tmp_path}/chats", {how}, '
        "poke_interval=0.2, timeout=2, soft_fail=True)"
    )
    name = how.replace("=", "_")
    assert states(run(f"nothing_{name}", sensor)) == {"wait": "skipped"}
    query = "select user_id from conversations order by last_message_at desc limit 1"
    [(user_id,)] = mirror.sql(query).fetchall()
    lane.world.add_messages(user_id, 1)
    done = run(f"something_{name}", sensor)
    assert states(done) == {"wait": "success"}
    assert value_of(done, "wait")["user_id"] == user_id


def test_the_sensor_waits_as_long_as_the_service_asks(
    run: Run, lane: Lane, connect: Connect
) -> None:
    connect(lane)
    lane.fault("users: status(429, retry_after=3) x1")
    since = datetime.now(UTC) - timedelta(hours=1)
    write_now(lane)
    began = monotonic()
    done = run(
        "asked",
        f'NewMessagesSensor(task_id="wait", since="{since.isoformat()}", poke_interval=0.2, '
        "timeout=60)",
    )
    assert states(done) == {"wait": "success"}
    assert monotonic() - began >= 3
    # Without the wait there would have been some ten more.
    assert lane.counts()["users"] <= 3


@BOTH
@pytest.mark.parametrize(("soft", "ends"), [("True", "skipped"), ("False", "failed")])
def test_a_dead_service_is_waited_for_until_the_timeout(
    run: Run,
    lane: Lane,
    connect: Connect,
    capsys: pytest.CaptureFixture[str],
    how: str,
    soft: str,
    ends: str,
) -> None:
    connect(lane)
    lane.fault("users: status(500)")
    sensor = (
        f'NewMessagesSensor(task_id="wait", since="2026-01-01", {how}, soft_fail={soft}, '
        "poke_interval=0.1, timeout=2)"
    )
    began = monotonic()
    assert states(run(f"dead_{'True' in how}_{ends}", sensor)) == {"wait": ends}
    assert monotonic() - began >= 2
    shown = capsys.readouterr().out
    assert lane.counts()["users"] > 6
    assert shown.count("Check failed (") == lane.counts()["users"]
    assert "once more in" not in shown
    assert "nothing new within timeout=2 s" in shown or "Sensor has timed out" in shown


@BOTH
@pytest.mark.parametrize("status", [401, 403, 404, 406])
def test_what_no_wait_would_mend_fails_the_sensor_at_once(
    run: Run, lane: Lane, connect: Connect, how: str, status: int
) -> None:
    """Also with soft_fail: a skip would go unnoticed."""
    connect(lane)
    # With deferrable the second check is the triggerer's.
    lane.fault(f"users offset=0 attempt=2: status({status})")
    sensor = (
        f'NewMessagesSensor(task_id="wait", {how}, soft_fail=True, poke_interval=0.2, retries=3, '
        "timeout=60)"
    )
    began = monotonic()
    assert states(run(f"refused_{status}_{'True' in how}", sensor)) == {"wait": "failed"}
    assert monotonic() - began < 30


@BOTH
def test_never_fail_skips_even_that(run: Run, lane: Lane, connect: Connect, how: str) -> None:
    connect(lane)
    lane.fault("users: status(401)")
    sensor = f'NewMessagesSensor(task_id="wait", {how}, never_fail=True)'
    assert states(run(f"never_{'True' in how}", sensor)) == {"wait": "skipped"}


@BOTH
def test_a_mirror_that_is_not_there_yet(
    run: Run,
    lane: Lane,
    connect: Connect,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    how: str,
) -> None:
    connect(lane)
    sensor = f'NewMessagesSensor(task_id="wait", mirror="{tmp_path}/chats", {how}'
    name = f"first_{'True' in how}"
    assert states(run(name, f"{sensor}, soft_fail=True)")) == {"wait": "skipped"}
    assert "no synced mirror" in capsys.readouterr().out
    assert states(run(name, f"{sensor})")) == {"wait": "failed"}
    assert "schedule BackreadSyncOperator(mirror=" in capsys.readouterr().out
