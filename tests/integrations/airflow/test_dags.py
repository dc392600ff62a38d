"""The hook and the operators in one process, by ``DAG.test``."""

import pytest
from dag_files import extras_of, run_dag, states, value_of
from held import messages_landed, messages_of, mirror_holds


def test_a_sync_has_an_xcom_and_an_asset_event(run, lane, connect, tmp_path):
    connect(lane)
    done = run("sync", f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats/")')
    assert states(done) == {"chats": "success"}
    assert mirror_holds(tmp_path / "chats", lane.world)
    summary = value_of(done, "chats")
    assert summary["messages_stored"] == lane.world.total_messages
    assert extras_of("sync") == [(f"file://{tmp_path}/chats", summary)]


def test_mapped_shards_are_committed(run, lane, connect, tmp_path):
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
    assert extras_of("by_shards") == [(f"file://{tmp_path}", summary)]


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


def test_a_wrong_secret_fails_the_task_without_a_retry(run, lane, connect, tmp_path, capsys):
    connect(lane)
    lane.fault("users: status(401)")
    done = run(
        "refused",
        f"""
        BackreadSyncOperator(
            task_id="chats", mirror="{tmp_path}/a", retries=2, retry_delay=timedelta(0)
        )
        """,
    )
    assert states(done) == {"chats": "failed"}
    shown = capsys.readouterr().out
    assert shown.count("AirflowFailException: the connection 'backread_default': GET ") == 1
    assert "401: it rejected the secret; correct the field password (API secret)" in shown
    assert lane.secret not in shown
    assert lane.calls().count == 1


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
