"""Airflow's operators: arguments, budget, waits and failures; one reading by many tasks."""

import base64
import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backread import Client, Mirror, RateLimitError, ServerError, landing
from backread.errors import LandingError
from backread.integrations.airflow import runs
from backread.integrations.airflow.runs import why_full
from backread.testing import Fault, Lane, World
from helpers import fake_airflow
from helpers.fake_airflow import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    Asset,
    AssetAlias,
    connect,
    run,
)
from helpers.scripted_server import ScriptedServer, answer

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

airflow = fake_airflow.airflow
no_connections = fake_airflow.no_connections

USERS = 30
HOUR, DAY = 3600.0, 86_400.0
pytestmark = pytest.mark.backread(world=World(seed=7, users=USERS, messages_per_user=(0, 20)))


@pytest.fixture
def sync(airflow: Any, backread_mock: Lane, tmp_path: Any) -> Any:
    """Makes a task that syncs a mirror from the mock."""
    connect(backread_mock, max_concurrency=1)

    def sync(**arguments: Any) -> Any:
        given = {"mirror": str(tmp_path / "chats"), **arguments}
        return airflow.BackreadSyncOperator(task_id="chats", **given)

    return sync


def is_complete(folder: Any, lane: Lane) -> bool:
    """Whether a mirror has every message of the mock, each once."""
    held = Mirror(folder).sql("SELECT user_id, id FROM messages ORDER BY ALL").fetchall()
    ids = lane.world.user_ids()
    return held == sorted((user, each) for user in ids for each in lane.world.message_ids(user))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mirror": "chats/"}, "an absolute path, not 'chats/'"),
        ({"mirror": ""}, "path or URI"),
        ({"mirror": "s3://bucket/chats"}, "a path that DuckDB"),
        ({"max_requests": 0}, "max_requests must be 1 or"),
        ({"memory_limit": 1e9}, "memory_limit: .* a number of bytes"),
        ({"max_staleness": "soon"}, "max_staleness must be a number"),
        ({"max_seconds": timedelta(0)}, "max_seconds must be more"),
        ({"memory_limit": "1MB"}, "memory_limit must be 100MB or more"),
        ({"require_certificate": "maybe"}, "require_certificate must be true or false"),
        ({"longest_wait": -1}, "longest_wait"),
        ({"pseudonymise": "{{ params.key }}"}, "absolute path of a key file"),
        ({"pseudonymise": b"0" * 32}, "absolute path of a key file"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(sync, arguments, said):
    with pytest.raises(ValueError, match=said):
        sync(**arguments)
    with pytest.raises(TypeError, match="redact must be True or False"):
        sync(redact="{{ params.private }}")


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        ("BackreadPlanOperator", {"folder": "landing"}, "an absolute path"),
        ("BackreadPlanOperator", {"resource": "chats"}, "resource must be 'users' or 'messages'"),
        ("BackreadPlanOperator", {"workers": "many"}, "workers must be a whole number"),
        ("BackreadCommitOperator", {"folder": "landing", "landed": []}, "an absolute path"),
    ],
)
def test_invalid_arguments_of_shards_are_refused_too(airflow, kind, arguments, said):
    with pytest.raises(ValueError, match=said):
        getattr(airflow, kind)(task_id="task", **{"folder": "/srv/landed", **arguments})


def test_the_asset_of_the_folder_is_the_outlet(sync, airflow):
    asset = airflow.folder_asset("/srv/chats")
    assert asset == Asset("file:///srv/chats")
    assert airflow.folder_asset("s3://bucket/chats/") == Asset("s3://bucket/chats")
    task = sync(mirror="/srv/chats/")
    assert (task.outlets, task.max_active_tis_per_dag) == ([asset], 1)
    assert sync(mirror="{{ var.value.folder }}").outlets == []
    default_args = {"max_active_tis_per_dag": 2}
    assert sync(default_args=default_args).max_active_tis_per_dag is None
    with pytest.raises(ValueError, match="absolute"):
        airflow.folder_asset("chats")


def test_a_report_url_is_a_link_of_the_task(sync):
    task = sync(report_url="https://reports.example.com/chats.html")
    [link] = task.operator_extra_links
    assert (link.name, link.get_link(task, ti_key=None)) == ("Report", task.report_url)
    assert not hasattr(sync(), "operator_extra_links")


def test_the_summary_is_the_xcom_and_the_extra_of_the_event(sync, airflow, backread_mock, tmp_path):
    done = run(sync(outlets=[AssetAlias("chats"), Asset("file:///elsewhere")]))
    assert is_complete(tmp_path / "chats", backread_mock)
    total = backread_mock.world.total_messages
    told = ("mode", "state", "users_stored", "messages_stored", "messages", "uncertified_lists")
    told = [done.xcom[name] for name in told]
    assert told == ["incremental", "finished", USERS, total, total, 0]
    assert done.xcom["mirror"] == str(tmp_path / "chats")
    asset = airflow.folder_asset(str(tmp_path / "chats"))
    assert done.events[AssetAlias("chats")].added == [(asset, done.xcom)]
    assert done.events[Asset("file:///elsewhere")].extra == done.xcom


def test_arguments_may_be_text_as_a_template_renders_it(sync, backread_mock):
    backread_mock.dialect = "total=null"
    task = sync(
        mode="{{ params.mode }}",
        full_every="86400",
        max_staleness="None",
        max_requests="",
        max_seconds="60",
        memory_limit="200MB",
        require_certificate="False",
    )
    task.mode = "incremental"
    assert run(task).xcom["mode"] == "full"
    assert run(task).xcom["mode"] == "incremental"


def test_an_argument_that_renders_to_nonsense_fails_the_task_at_once(sync, backread_mock):
    task = sync(max_staleness="{{ dag.dag_id }}")
    task.max_staleness = "my_dag"
    with pytest.raises(AirflowFailException, match="max_staleness must be a number, not 'my_dag'"):
        run(task)
    assert backread_mock.calls().count == 0


def test_a_budget_ends_the_run_and_the_next_task_continues(sync, backread_mock, tmp_path):
    task = sync(max_requests=20, require_certificate=True)
    first = run(task)
    assert (first.xcom["state"], first.xcom["requests"]) == ("partial", 20)
    assert first.xcom["lists_done"] + first.xcom["lists_left"] == USERS
    assert [event.extra for event in first.events.values()] == [first.xcom]
    second = run(task).xcom
    assert (second["state"], second["resumed"], second["run_id"]) == ("finished", True, 1)
    assert is_complete(tmp_path / "chats", backread_mock)


def test_a_budget_holds_across_waits(sync, backread_mock, tmp_path):
    for user_id in backread_mock.world.user_ids()[::8]:
        backread_mock.fault(f"messages user={user_id}: status(429, retry_after=0) x1")
    assert run(sync(max_requests=20)).xcom["state"] == "partial"
    # Requests in flight when a wait began are counted by the sync after it.
    assert 20 <= backread_mock.calls().count <= 22
    backread_mock.clear_faults()
    backread_mock.fault("messages: status(429, retry_after=1) x1 each")
    task = sync(mirror=str(tmp_path / "other"), max_seconds=0.9)
    assert run(task).xcom["state"] == "partial"


def test_a_missing_certificate_fails_without_an_event_and_keeps_the_rows(
    sync, backread_mock, tmp_path
):
    backread_mock.dialect = "total=null"
    with pytest.raises(AirflowFailException, match="the mirror is synced, but no asset event"):
        run(sync(require_certificate=True))
    assert is_complete(tmp_path / "chats", backread_mock)


def test_short_waits_stay_in_the_worker(sync, backread_mock, tmp_path):
    # More than may be fruitless in a row.
    for user_id in backread_mock.world.user_ids()[::5]:
        backread_mock.fault(f"messages user={user_id}: status(429, retry_after=0) x1")
    assert run(sync()).xcom["resumed"]
    assert is_complete(tmp_path / "chats", backread_mock)


def test_waits_with_nothing_new_read_in_between_end_the_attempt(sync, backread_mock):
    backread_mock.fault("messages: status(429, retry_after=0)")
    with pytest.raises(RateLimitError):
        run(sync())
    # The first comes after the users, which are new; then six with nothing new.
    assert backread_mock.counts()["messages"] == 7


def test_a_long_wait_reschedules_until_give_up_after(sync, backread_mock, tmp_path):
    last = backread_mock.world.user_ids()[-1]
    backread_mock.fault(f"messages user={last}: status(429, retry_after=600)")
    now = datetime.now(UTC)
    with pytest.raises(AirflowRescheduleException) as caught:
        run(sync(give_up_after=3600))
    until = caught.value.reschedule_date
    assert timedelta(seconds=590) < until - now < timedelta(seconds=660)
    with pytest.raises(AirflowRescheduleException):
        run(sync(give_up_after=timedelta(hours=1)), now - timedelta(minutes=40))
    with pytest.raises(AirflowFailException, match="gave up: the service requests a wait of 600 s"):
        run(sync(give_up_after=3600), now - timedelta(minutes=55))
    with pytest.raises(AirflowRescheduleException):
        run(sync(give_up_after=None), now - timedelta(days=30))
    backread_mock.clear_faults()
    before = backread_mock.counts()["messages"]
    assert run(sync()).xcom["resumed"]
    assert backread_mock.counts()["messages"] - before < USERS
    assert is_complete(tmp_path / "chats", backread_mock)


def test_on_kill_ends_the_read_and_keeps_what_was_committed(sync, backread_mock, tmp_path):
    task = sync()
    last = backread_mock.world.user_ids()[-1]
    backread_mock.fault(f"messages user={last}: stall()")

    def kill() -> None:
        while backread_mock.counts().get("messages", 0) < USERS:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, lambda *_: task.on_kill())
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(AirflowException, match="ended by a signal; committed rows are kept"):
            run(task)
    finally:
        killer.join()
        signal.signal(signal.SIGALRM, before)
    backread_mock.clear_faults()
    sent = backread_mock.counts()["messages"]
    assert run(sync()).xcom["resumed"]
    assert backread_mock.counts()["messages"] - sent < USERS
    # Nothing is read, so there is nothing to end.
    task.on_kill()


def test_a_permanent_error_fails_at_once_and_others_may_be_retried(sync, backread_mock):
    backread_mock.fault("users: status(401) x1")
    with pytest.raises(AirflowFailException, match=r"'backread_default': .* 401: it rejected"):
        run(sync())
    assert backread_mock.calls().count == 1
    connect(backread_mock, max_retries=0)
    backread_mock.fault("users: status(503)")
    with pytest.raises(ServerError) as caught:
        run(sync())
    assert caught.value.__suppress_context__


def test_progress_is_logged_at_intervals(sync, backread_mock, caplog, monkeypatch, tmp_path):
    caplog.set_level("INFO", fake_airflow.LOG)
    run(sync())
    assert "requests (" not in caplog.text
    monkeypatch.setattr("backread.integrations.airflow.base_operators.SECONDS_BETWEEN_LINES", 0.0)
    run(sync(mirror=str(tmp_path / "other")))
    assert f"{backread_mock.world.total_messages:,} messages, " in caplog.text
    assert f"{USERS} of {USERS} lists" in caplog.text


def test_lists_that_cannot_be_read_are_a_warning(sync, backread_mock, caplog):
    user_id = backread_mock.world.user_ids()[3]
    backread_mock.on("messages", user=user_id).fail(Fault.status(403))
    assert run(sync()).xcom["unread_lists"] == 1
    assert f"The messages of 1 users could not be read ({user_id})" in caplog.text


def full_hours(monkeypatch: pytest.MonkeyPatch, starts: list[float]) -> list[float]:
    """When the full ones of daily full runs began, in hours; a run begins at each start."""
    begun: list[tuple[str, float, str]] = []
    monkeypatch.setattr(runs, "_runs", lambda folder: begun)
    for start in starts:
        mode = "incremental" if why_full("chats", DAY, start) is None else "full"
        begun.append((mode, start, "finished"))
    return [start / HOUR for mode, start, _ in begun if mode == "full"]


@pytest.mark.parametrize("gap", [5 / 60, 1, 24])
def test_no_full_run_is_missed_at_any_schedule_and_each_keeps_its_hour(monkeypatch, gap):
    """Though starts vary."""
    late = [0.0, 9.0, 3.0, 12.0, 1.0]
    starts = [turn * gap * HOUR + late[turn % 5] for turn in range(int(24 * 10 / gap))]
    hours = full_hours(monkeypatch, starts)
    assert hours == pytest.approx([24.0 * day for day in range(10)], abs=0.01)


@pytest.mark.backread(world=World(seed=7, users=20, messages_per_user=(0, 3)))
def test_the_runs_of_the_mirror_count(backread_mock, tmp_path):
    """A partial run keeps its mode; runs over given users do not count."""
    pytest.importorskip("duckdb")
    folder = str(tmp_path / "chats")
    mirror = Mirror(folder)
    assert why_full(folder, None) is None
    assert why_full(folder, DAY) == "this mirror has no full run yet"
    with backread_mock.client() as client:
        mirror.sync(client)
        assert why_full(folder, DAY) == "this mirror has no full run yet"
        mirror.sync(client, mode="full")
        assert why_full(folder, DAY) is None
        user_id = client.users.page(limit=1).items[0].id
        assert mirror.sync(client, users=[user_id], max_requests=1).partial
        assert why_full(folder, 0) == "0.0 hours after the last full run began"
        assert mirror.sync(client, max_requests=2).partial
        assert why_full(folder, 0) is None


# --- one reading by many tasks, landed as Parquet -------------------------------------------------


@pytest.fixture
def folder(backread_mock: Lane, tmp_path: Any) -> str:
    """A landing folder, and a connection to the mock."""
    connect(backread_mock)
    return str(tmp_path / "landed")


def planned(airflow: Any, folder: str, shards: int = 2) -> list[Any]:
    task = airflow.BackreadPlanOperator(task_id="plan", folder=folder, shards=shards)
    items: list[Any] = run(task).xcom
    return items


def landed(airflow: Any, shard: Any, **arguments: Any) -> dict[str, Any]:
    task = airflow.BackreadShardOperator(task_id="shard", shard=shard, **arguments)
    found: dict[str, Any] = run(task).xcom
    return found


def committed(airflow: Any, folder: str, *found: Any, **arguments: Any) -> Any:
    return run(
        airflow.BackreadCommitOperator(task_id="commit", folder=folder, landed=found, **arguments)
    )


def test_plan_shards_and_commit_land_each_message_once(airflow, folder, backread_mock):
    shards = planned(airflow, folder)
    assert [shard["shard"] for shard in shards] == [0, 1]
    done = committed(airflow, folder, *(landed(airflow, shard) for shard in shards))
    [run_] = landing.runs(folder)
    total = backread_mock.world.total_messages
    assert done.xcom.items() >= {"files": 2, "rows": total, "run_id": run_.run_id}.items()
    assert done.xcom["requests"] >= 30
    assert done.events[airflow.folder_asset(folder)].extra == done.xcom
    table = landing.dataset(folder, run_).to_table(columns=["user_id", "id"])
    assert len({*zip(*(column.to_pylist() for column in table.columns), strict=True)}) == total


def test_a_commit_without_a_required_certificate_fails_at_once(airflow, folder, backread_mock):
    shards = planned(airflow, folder)
    first = landed(airflow, shards[0])
    backread_mock.dialect = "total=null"
    doubtful = landed(airflow, shards[1])
    with pytest.raises(AirflowFailException, match="nothing was committed: require_certificate"):
        committed(airflow, folder, first, doubtful, require_certificate="true")
    with pytest.raises(LandingError, match="not landed: 1; land them"):
        committed(airflow, folder, first, require_certificate=True)
    assert landing.runs(folder) == []
    backread_mock.dialect = "documented"
    # The first landing of each shard is committed.
    sure = landed(airflow, shards[1])
    done = committed(airflow, folder, first, sure, doubtful, require_certificate=True)
    assert done.xcom["certificate"] != "uncertified"


def test_a_wrong_xcom_says_how_to_wire_the_tasks(airflow, folder):
    with pytest.raises(AirflowFailException, match=r"expand\(shard=plan.output\)"):
        landed(airflow, {"folder": folder})
    for wrong in ((), ({"folder": folder},)):
        with pytest.raises(AirflowFailException, match="output of a mapped BackreadShardOperator"):
            committed(airflow, folder, *wrong)


def test_a_shard_has_its_share_of_the_pace(airflow, folder, backread_mock, monkeypatch):
    connect(backread_mock, rate_limit=100, max_concurrency=8)
    [shard, _] = planned(airflow, folder)
    changes: list[dict[str, object]] = []
    changed = Client.with_options
    monkeypatch.setattr(
        Client, "with_options", lambda self, **each: changes.append(each) or changed(self, **each)
    )
    landed(airflow, shard)
    assert changes == [{"max_concurrency": 4, "rate_limit": 50.0}]


def test_an_edited_shard_sends_nothing(airflow, folder, backread_mock, tmp_path):
    [shard, _] = planned(airflow, folder)
    [file] = (tmp_path / "landed").glob("run=*/shard=00000/shard.json")
    whole = file.read_text(encoding="utf-8")
    sent = backread_mock.calls().count
    with ScriptedServer(lambda request: answer(403)) as elsewhere:
        file.write_text(whole.replace(backread_mock.url, elsewhere.url), encoding="utf-8")
        assert file.read_text(encoding="utf-8") != whole
        with pytest.raises(AirflowFailException, match=r"shard 0 of 2 is not signed .* plan again"):
            landed(airflow, shard)
        assert elsewhere.requests == []
    assert backread_mock.calls().count == sent
    file.write_text(whole, encoding="utf-8")
    assert landed(airflow, shard)["rows"] > 0


def test_shards_land_pseudonyms(airflow, folder, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(base64.b64encode(bytes(range(7, 39))))
    key.chmod(0o600)
    [shard] = planned(airflow, folder, shards=1)
    committed(airflow, folder, landed(airflow, shard, pseudonymise=str(key), redact=True))
    [run_] = landing.runs(folder)
    emails = landing.dataset(folder, run_).to_table()["sender_email"].to_pylist()
    assert any(emails)
    assert all(email.startswith("email-") for email in emails if email)
    with pytest.raises(AirflowFailException, match=r"the key file .* cannot be read"):
        landed(airflow, shard, pseudonymise=str(tmp_path / "none"))
