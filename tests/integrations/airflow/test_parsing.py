"""What is wrong is said when the DAG is parsed, or by the first thing that a task does."""

import os
import re
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from airflow.providers_manager import ProvidersManager
from moved import ProvidersManagerTaskRuntime, serialize

from backread import Client, landing, plan
from backread.integrations.airflow import (
    BackreadCommitOperator,
    BackreadHook,
    BackreadPlanOperator,
    BackreadShardOperator,
    BackreadSyncOperator,
    NewMessagesSensor,
    NewMessagesTrigger,
    folder_asset,
)
from backread.integrations.airflow.names import AirflowFailException
from backread.integrations.airflow.new_messages_query import Mark
from backread.mirror import synchronize

MIRROR = "/srv/chats"


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        (BackreadSyncOperator, {"mirror": "chats/"}, "an absolute path, not 'chats/'"),
        (BackreadSyncOperator, {"mirror": ""}, "path or URI"),
        (BackreadSyncOperator, {"mirror": "s3://bucket/chats"}, "a path that DuckDB"),
        (BackreadSyncOperator, {"mirror": MIRROR, "mode": "ful"}, "'incremental' or 'full'"),
        (BackreadSyncOperator, {"mirror": MIRROR, "max_staleness": -1}, "max_staleness"),
        (BackreadSyncOperator, {"mirror": MIRROR, "max_staleness": "soon"}, "max_staleness"),
        (BackreadSyncOperator, {"mirror": MIRROR, "full_every": "day"}, "full_every"),
        (BackreadSyncOperator, {"mirror": MIRROR, "full_every_runs": 0}, "full_every_runs"),
        (BackreadSyncOperator, {"mirror": MIRROR, "max_requests": 0}, "max_requests must be 1 or"),
        (BackreadSyncOperator, {"mirror": MIRROR, "max_seconds": 0}, "max_seconds must be more"),
        (BackreadSyncOperator, {"mirror": MIRROR, "max_seconds": timedelta(-1)}, "max_seconds"),
        (BackreadSyncOperator, {"mirror": MIRROR, "memory_limit": "1MB"}, "must be 100MB or more"),
        (BackreadSyncOperator, {"mirror": MIRROR, "memory_limit": 1e9}, "a number of bytes"),
        (BackreadSyncOperator, {"mirror": MIRROR, "require_certificate": "maybe"}, "require_cert"),
        (BackreadSyncOperator, {"mirror": MIRROR, "longest_wait": -1}, "longest_wait"),
        (BackreadSyncOperator, {"mirror": MIRROR, "give_up_after": -1}, "give_up_after"),
        (BackreadSyncOperator, {"mirror": MIRROR, "on_rate_limit": "raise"}, "'reschedule' or"),
        (BackreadPlanOperator, {"folder": "landing"}, "an absolute path"),
        (BackreadPlanOperator, {"folder": MIRROR, "resource": "chats"}, "'users' or 'messages'"),
        (BackreadPlanOperator, {"folder": MIRROR, "shards": 0}, "shards"),
        (BackreadPlanOperator, {"folder": MIRROR, "workers": "many"}, "workers"),
        (BackreadCommitOperator, {"folder": "landing", "landed": []}, "an absolute path"),
        (NewMessagesSensor, {"mirror": MIRROR, "since": "2026-01-01"}, "not both"),
        (NewMessagesSensor, {"since": "yesterday"}, "'yesterday' is not an ISO 8601 time"),
        (NewMessagesSensor, {"mirror": "chats"}, "an absolute path"),
        (NewMessagesSensor, {"mode": "reschedule"}, "needs mirror or since"),
        (NewMessagesSensor, {"max_requests": 1}, "max_requests"),
    ],
)
def test_arguments_are_refused_where_the_dag_is_parsed(kind, arguments, said):
    with pytest.raises(ValueError, match=said):
        kind(task_id="task", **arguments)


@pytest.mark.parametrize("argument", ["on_rate_limit", "longest_wait", "deferrable"])
def test_plans_and_shards_have_no_reschedule(argument):
    """After it they would read from their start."""
    given: dict[str, Any] = {argument: "reschedule"}
    with pytest.raises(TypeError, match=argument):
        BackreadPlanOperator(task_id="task", folder=MIRROR, **given)
    with pytest.raises(TypeError, match=argument):
        BackreadShardOperator.partial(task_id="task", **given)


def test_durations_may_be_timedeltas():
    task = BackreadSyncOperator(
        task_id="task",
        mirror=MIRROR,
        max_staleness=timedelta(days=1),
        max_seconds=timedelta(hours=1),
        longest_wait=timedelta(1),
    )
    assert (task.max_staleness, task.longest_wait) == (timedelta(days=1), 86_400)
    assert task.max_seconds == timedelta(hours=1)


def test_a_sync_gets_the_budget_and_the_memory_of_its_task(lane, tmp_path, monkeypatch):
    """Also where a template made them text."""
    given: list[Any] = []
    sync = synchronize.synchronize
    monkeypatch.setattr(
        synchronize,
        "synchronize",
        lambda folder, client, options: given.append(options) or sync(folder, client, options),
    )
    task = BackreadSyncOperator(
        task_id="task", mirror=str(tmp_path / "chats"), outlets=[], max_requests="500",
        max_seconds=timedelta(hours=1), memory_limit="200MB",
    )  # fmt: skip
    with lane.client() as client:
        task.read({"outlet_events": {}}, client)
    [options] = given
    assert (options.max_requests, options.memory_limit) == (500, 200_000_000)
    assert 3590 < options.max_seconds <= 3600


def test_a_mirror_s_asset_is_the_task_s_outlet():
    task = BackreadSyncOperator(task_id="task", mirror=f"{MIRROR}/")
    assert task.outlets == [folder_asset(MIRROR)]
    assert folder_asset(MIRROR).uri == "file:///srv/chats"
    assert folder_asset("s3://bucket/chats/").uri == "s3://bucket/chats"
    assert BackreadSyncOperator(task_id="other", mirror="{{ var.value.x }}").outlets == []
    with pytest.raises(ValueError, match="absolute"):
        folder_asset("chats")


def test_a_connection_that_is_not_there(airflow_home):
    with pytest.raises(AirflowFailException, match="no connection 'nowhere'; create one"):
        BackreadHook("nowhere").get_conn()


def test_a_connection_that_lacks_something(airflow_home, lane, connect, monkeypatch):
    connect(lane, "odd", timeout="soon")
    with pytest.raises(AirflowFailException, match="'odd': the field timeout must be a number"):
        BackreadHook("odd").get_conn()
    connect(lane, "odd", timeout=-1)
    with pytest.raises(AirflowFailException, match=r"'odd': .*timeout"):
        BackreadHook("odd").get_conn()
    assert BackreadHook("odd").test_connection()[0] is False


def test_options_go_before_the_connection_s(airflow_home, lane, connect):
    connect(lane, timeout=5, max_retries=1)
    with BackreadHook(max_retries=3).get_conn() as client:
        assert client.users.page(limit=1).total == 60
        assert "max_retries" not in repr(client)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("timout", "timout; did you mean timeout?"),
        ("colour", "colour; it has allow_http, ca_bundle,"),
        ("api_secret", "api_secret; it is the connection's password"),
    ],
)
def test_a_misspelt_option_of_the_hook_is_refused_at_once(option, hint):
    with pytest.raises(TypeError, match=re.escape(f"BackreadHook() has no option {hint}")):
        BackreadHook("chats", **{option: 5})  # type: ignore[misc]


def test_a_shard_of_something_else_is_refused():
    task = BackreadShardOperator(task_id="task", shard={"folder": MIRROR})  # type: ignore[typeddict-item]
    with pytest.raises(AirflowFailException, match=r"expand\(shard=plan.output\)"):
        task.read({}, None)  # type: ignore[arg-type]


def test_a_shard_has_its_part_of_the_pace_and_keeps_to_its_service(
    lane, service, tmp_path, monkeypatch
):
    with lane.client(rate_limit=100, max_concurrency=8) as client:
        run_id = landing.begin(tmp_path, plan(client, shards=2))
        shard = {"folder": str(tmp_path), "run_id": run_id, "shard": 0}
        task = BackreadShardOperator(task_id="task", shard=shard)  # type: ignore[arg-type]
        changes: list[dict[str, object]] = []
        changed = Client.with_options
        monkeypatch.setattr(
            Client,
            "with_options",
            lambda self, **each: changes.append(each) or changed(self, **each),
        )
        assert task.read({}, client)["rows"] > 0
    assert changes == [{"max_concurrency": 4, "rate_limit": 50.0}]
    with (
        Client("http://127.0.0.1:1", lane.secret, "acme") as other,
        pytest.raises(AirflowFailException, match="plan again"),
    ):
        task.read({}, other)


def test_the_trigger_travels_without_the_secret():
    trigger = NewMessagesTrigger(
        backread_conn_id="chats", mark=Mark().to_dict(), poke_interval=1, max_requests=12,
        until="2026-01-01T00:00:00+00:00", wait=2.0, mirror=MIRROR,
    )  # fmt: skip
    path, arguments = trigger.serialize()
    assert path == "backread.integrations.airflow.trigger.NewMessagesTrigger"
    serialize(arguments)
    assert NewMessagesTrigger(**arguments).serialize() == (path, arguments)


def test_lineage_is_the_service_and_the_tables_with_their_rows(lane, tmp_path):
    task = BackreadSyncOperator(task_id="task", mirror=str(tmp_path / "chats"), outlets=[])
    assert task.get_openlineage_facets_on_complete(None) is None
    with lane.client() as client:
        task.read({"outlet_events": {}}, client)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert [(each.namespace, each.name) for each in lineage.inputs] == [(lane.url, "/")]
    assert [
        (each.namespace, each.name, each.outputFacets["outputStatistics"].rowCount)
        for each in lineage.outputs
    ] == [
        ("file", f"{tmp_path}/chats/users", 60),
        ("file", f"{tmp_path}/chats/messages", lane.world.total_messages),
    ]


def test_a_report_that_is_served_is_a_link_of_the_task():
    url = "https://reports.example.com/{{ dag.dag_id }}.html"
    task = BackreadSyncOperator(task_id="task", mirror=MIRROR, report_url=url)
    [link] = task.operator_extra_links
    assert (link.name, link.get_link(task, ti_key=None)) == ("Report", url)
    assert not BackreadSyncOperator(task_id="other", mirror=MIRROR).operator_extra_links


def test_airflow_knows_the_provider(airflow_home):
    assert "backread" in ProvidersManager().providers
    hook = ProvidersManagerTaskRuntime().hooks["backread"]
    assert hook is not None
    assert (hook.hook_name, hook.connection_testable) == ("backread", True)


def test_the_provider_s_description_costs_no_import_of_airflow():
    program = (
        "import sys\n"
        "from backread.integrations.airflow.provider_info import get_provider_info\n"
        "get_provider_info()\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'airflow']\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))
