"""The provider, its hook and its operators in one process, by ``DAG.test``."""

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
from dag_files import (
    extras_of,
    mirror_holds,
    run_dag,
    states,
    value_of,
)


@pytest.mark.parametrize("native", [False, True])
def test_arguments_are_templates_and_an_alias_gets_the_asset(
    airflow_home, lane, connect, tmp_path, native
):
    """With ``render_template_as_native_obj`` they arrive as their types, otherwise as text."""
    conn_id = connect(lane, "chat_service")
    lane.dialect = "total=null"
    params = {"strict": False, "shards": 2, "what": "users", "days": None}
    name = f"templates_{native}"
    done = run_dag(
        airflow_home,
        name,
        f"""
        dag.render_template_as_native_obj = {native}
        dag.params = {params}
        BackreadSyncOperator(
            task_id="chats", mirror="{tmp_path}/{{{{ dag.dag_id }}}}",
            mode="{{{{ 'full' if dag_run.run_type == 'manual' else 'incremental' }}}}",
            require_certificate="{{{{ params.strict }}}}", max_staleness="{{{{ params.days }}}}",
            full_every="{{{{ 24 * 3600 }}}}", max_requests="{{{{ params.days }}}}",
            max_seconds="{{{{ 24 * 3600 }}}}", memory_limit="{{{{ 10**9 }}}}",
            backread_conn_id="{{{{ var.value.get('conn', '{conn_id}') }}}}",
            outlets=[AssetAlias("chats")],
        )
        plan = BackreadPlanOperator(
            task_id="plan", folder="{tmp_path}/b", resource="{{{{ params.what }}}}",
            shards="{{{{ params.shards }}}}", workers="{{{{ params.shards }}}}",
            backread_conn_id="{conn_id}",
        )
        shards = BackreadShardOperator.partial(
            task_id="shard", backread_conn_id="{conn_id}"
        ).expand(shard=plan.output)
        BackreadCommitOperator(
            task_id="commit", folder="{tmp_path}/{{{{ 'b' }}}}", landed=shards.output,
            require_certificate="{{{{ params.strict }}}}",
        )
        """,
    )
    assert set(states(done).values()) == {"success"}
    assert value_of(done, "commit")["resource"] == "users"
    [(uri, extra)] = extras_of(name)
    assert (uri, extra["mode"]) == (f"file://{tmp_path}/{name}", "full")
    assert mirror_holds(tmp_path / name, lane.world)


def test_the_hook_gives_clients_to_tasks(run, lane, connect):
    connect(lane)
    done = run(
        "clients",
        """
        @task
        def count():
            with BackreadHook().get_conn() as client:
                return client.users.page(limit=1).total

        @task
        async def count_async():
            async with BackreadHook().get_async_client() as client:
                return (await client.users.page(limit=1)).total

        count()
        count_async()
        """,
    )
    assert set(states(done).values()) == {"success"}
    assert value_of(done, "count") == value_of(done, "count_async") == 60


def test_execution_timeout_ends_the_task_and_keeps_what_was_committed(
    run, lane, connect, tmp_path, capsys
):
    connect(lane)
    lane.fault(f"messages user={lane.world.user_ids()[-1]}: stall()")
    sync = f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats"'
    late = run("late", f"{sync}, execution_timeout=timedelta(seconds=8))")
    assert states(late) == {"chats": "failed"}
    assert "AirflowTaskTimeout" in capsys.readouterr().out
    lane.clear_faults()
    before = lane.counts()["messages"]
    again = run("again", f"{sync})")
    assert states(again) == {"chats": "success"}
    assert value_of(again, "chats")["resumed"]
    assert lane.counts()["messages"] - before < 60
    assert mirror_holds(tmp_path / "chats", lane.world)


def test_airflow_knows_the_provider(airflow_home):
    assert "backread" in ProvidersManager().providers
    hook = ProvidersManagerTaskRuntime().hooks["backread"]
    assert hook is not None
    assert (hook.hook_name, hook.connection_testable) == ("backread", True)
