"""The operators and the sensor in one process, by ``DAG.test``."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dag_files import BOTH, extras_of, run_dag, states, value_of
from held import mirror_holds
from moved import TaskDeferred

from backread import Mirror
from backread.integrations.airflow import BackreadSyncOperator
from backread.integrations.airflow.names import (
    AirflowFailException,
    AirflowRescheduleException,
)
from backread.integrations.airflow.sync import SyncSummary


def test_sync(run, lane, connect, tmp_path):
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


def test_folder_and_mode_are_templates_and_an_alias_gets_the_asset(run, lane, connect, tmp_path):
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


def test_progress_is_logged_at_intervals(run, lane, connect, tmp_path, monkeypatch, capsys):
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
def test_numbers_and_truths_may_be_templates(airflow_home, lane, connect, tmp_path, native):
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
            max_requests="{{{{ params.days }}}}", max_seconds="{{{{ 24 * 3600 }}}}",
            memory_limit="{{{{ 10**9 }}}}",
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


def test_a_rendered_argument_that_is_no_good_fails_at_once(run, lane, connect, tmp_path, capsys):
    connect(lane)
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", retries=3'
    done = run("rendered", f'{sync}, max_staleness="{{{{ dag.dag_id }}}}")')
    assert states(done) == {"chats": "failed"}
    assert "max_staleness must be a number, not 'rendered'" in capsys.readouterr().out
    for number, (name, reason) in enumerate(
        [
            ("max_requests", "max_requests must be a whole number, not 'rendered"),
            ("max_seconds", "max_seconds must be a number, not 'rendered"),
            ("memory_limit", "memory_limit must be bytes, or text such as '2GB'"),
        ]
    ):
        done = run(f"rendered_{number}", f'{sync}, {name}="{{{{ dag.dag_id }}}}")')
        assert states(done) == {"chats": "failed"}
        assert reason in capsys.readouterr().out


def test_one_of_some_runs_is_full(run, lane, connect, tmp_path):
    connect(lane)
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", full_every'
    modes = [value_of(run("in_turn", f"{sync}_runs=2)"), "chats")["mode"] for _ in range(3)]
    assert modes == ["full", "incremental", "full"]
    daily = run("daily", f"{sync}=timedelta(days=1))")
    assert value_of(daily, "chats")["mode"] == "incremental"
    assert value_of(run("always", f"{sync}=0)"), "chats")["mode"] == "full"


def test_a_run_that_its_budget_ended_succeeds_and_the_next_one_continues_it(
    run, lane, connect, tmp_path, capsys
):
    connect(lane)
    sync = f"""
    BackreadSyncOperator(
        task_id="chats", mirror="{tmp_path}/chats", max_requests="{{{{ 40 }}}}",
        memory_limit="{{{{ '200MB' }}}}", require_certificate=True,
    )
    """
    first = run("budget", sync)
    assert states(first) == {"chats": "success"}
    summary = value_of(first, "chats")
    assert (summary["state"], summary["requests"]) == ("partial", 40)
    done, left = summary["lists_done"], summary["lists_left"]
    assert done > 0
    assert done + left == 60
    shown = capsys.readouterr().out
    assert f"{done} message lists are read, {left} left; the next run continues" in shown
    second = value_of(run("budget", sync), "chats")
    assert (second["state"], second["run_id"], second["resumed"]) == ("finished", 1, True)
    assert (second["lists_done"], second["lists_left"]) == (None, None)
    assert "the next run continues" not in capsys.readouterr().out
    assert mirror_holds(tmp_path / "chats", lane.world)
    uri = f"file://{tmp_path}/chats"
    assert extras_of("budget") == [(uri, summary), (uri, second)]


def test_a_budget_of_time_that_ends_before_all_users_are_read(run, lane, connect, tmp_path, capsys):
    """Nothing is certified yet, which is no failure."""
    connect(lane)
    lane.fault("users: stall()")
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", require_certificate=True'
    done = run("short_of_time", f"{sync}, max_seconds=timedelta(seconds=0.5))")
    assert states(done) == {"chats": "success"}
    summary = value_of(done, "chats")
    assert (summary["state"], summary["lists_left"]) == ("partial", None)
    shown = capsys.readouterr().out
    assert "the list of users is not read to its end; the next run continues" in shown


def test_a_budget_is_not_renewed_by_waits_in_the_worker(run, lane, connect, tmp_path):
    connect(lane, max_concurrency=1)
    for user_id in lane.world.user_ids():
        lane.fault(f"messages user={user_id}: status(429, retry_after=0) x1")
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}'
    done = run("budget_of_requests", f'{sync}/a", max_requests=20)')
    summary = value_of(done, "chats")
    assert summary["state"] == "partial"
    # What was in flight when a wait began is counted by the sync after it.
    assert 20 <= sum(lane.counts().values()) <= 22
    lane.clear_faults()
    lane.fault("messages: status(429, retry_after=1) x1")
    done = run("budget_of_time", f'{sync}/b", max_seconds=0.9)')
    assert value_of(done, "chats")["state"] == "partial"


def test_rows_without_a_certificate_fail_a_task_that_requires_one(run, lane, connect, tmp_path):
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


def test_short_waits_are_waited_out(run, lane, connect, tmp_path):
    connect(lane)
    lane.fault(f"messages user={lane.world.user_ids()[-1]}: status(429, retry_after=1) x1")
    done = run("short", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats")')
    assert states(done) == {"chats": "success"}
    assert value_of(done, "chats")["resumed"]
    assert mirror_holds(tmp_path / "chats", lane.world)


def test_a_service_that_only_asks_for_waits_is_given_up(run, lane, connect, tmp_path):
    connect(lane, max_concurrency=1)
    lane.fault("messages: status(429, retry_after=0)")
    done = run("given_up_sync", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a")')
    assert states(done) == {"chats": "failed"}
    # The first comes after the users, which are something new; then six with nothing.
    assert lane.counts()["messages"] == 7


def test_waits_with_something_read_between_them_are_not_counted(run, lane, connect, tmp_path):
    connect(lane, max_concurrency=1)
    for user_id in lane.world.user_ids()[::6]:
        lane.fault(f"messages user={user_id}: status(429, retry_after=0) x1")
    done = run("between", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a")')
    assert states(done) == {"chats": "success"}
    assert mirror_holds(tmp_path / "a", lane.world)


@BOTH
def test_a_wait_beyond_the_bound_fails_the_task(run, lane, connect, tmp_path, capsys, how):
    connect(lane)
    lane.fault(f"messages user={lane.world.user_ids()[-1]}: status(429, retry_after=7200)")
    name = f"bound_{'True' in how}"
    body = f"""
    BackreadSyncOperator(
        task_id="chats", mirror="{tmp_path}/a", give_up_after=timedelta(hours=1), retries=3, {how}
    )
    """
    assert states(run(name, body)) == {"chats": "failed"}
    assert "gave up: the service requests a wait of 7200 s" in capsys.readouterr().out
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


def test_the_bound_counts_from_the_first_of_all_reschedules(airflow_home, lane, connect, tmp_path):
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
    with pytest.raises(AirflowFailException, match="gave up"):
        task().execute({"ti": Rescheduled(late)})
    with pytest.raises(TaskDeferred) as deferred:
        task(deferrable=True).resume({"ti": Rescheduled(None)}, began=soon.isoformat())
    assert deferred.value.kwargs == {"began": soon.isoformat()}
    with pytest.raises(AirflowFailException, match="gave up"):
        task(deferrable=True).resume({"ti": Rescheduled(None)}, began=late.isoformat())
    lane.clear_faults()
    lane.fault("users: status(429, retry_after=4294967296)")
    unbound = BackreadSyncOperator(task_id="chats", mirror=str(tmp_path / "a"), give_up_after=None)
    with pytest.raises(AirflowRescheduleException) as rescheduled:
        unbound.execute({"ti": Rescheduled(late)})
    assert rescheduled.value.reschedule_date < now + timedelta(days=366)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"extra": {"vendor": "other"}}, "the field vendor"),
        ({"host": "{url}/elsewhere"}, "the field host (Base URL)"),
        ({"password": "mock_another"}, "the field password (API secret)"),
    ],
)
def test_a_wrong_field_of_the_connection_is_named_and_not_retried(
    run, lane, tmp_path, monkeypatch, capsys, wrong, field
):
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


def test_a_refused_secret_fails_at_once(run, lane, connect, tmp_path, capsys):
    connect(lane)
    lane.fault("users: status(401)")
    done = run(
        "refused", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/a", retries=3)'
    )
    assert states(done) == {"chats": "failed"}
    shown = capsys.readouterr().out
    assert "401: it rejected the secret" in shown
    assert lane.secret not in shown


def test_a_folder_that_cannot_be_made_is_one_error(run, lane, connect, tmp_path, capsys):
    connect(lane)
    (tmp_path / "file").touch()
    done = run("no_folder", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/file/a")')
    assert states(done) == {"chats": "failed"}
    shown = capsys.readouterr().out
    assert "cannot create the folder" in shown
    assert "choose another or change permissions" in shown
    assert "NotADirectoryError" not in shown


def test_a_task_that_took_too_long_keeps_what_it_committed(run, lane, connect, tmp_path, capsys):
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
