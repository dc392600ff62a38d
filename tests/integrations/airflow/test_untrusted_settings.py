"""Connections, XComs and landing folders are data: they lead the secret nowhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dag_files import run_dag, states

from backread import PermissionDeniedError, landing, plan
from backread.integrations.airflow import BackreadHook
from backread.integrations.airflow.names import AirflowFailException
from backread.testing import Lane
from scripted_server import ScriptedServer, answer


@pytest.fixture
def elsewhere() -> Iterator[ScriptedServer]:
    """A port of this machine; what it heard is in ``requests``."""
    with ScriptedServer(lambda request: answer(403)) as listening:
        yield listening


@pytest.fixture
def environment(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> Lane:
    """The worker's own service."""
    monkeypatch.setenv("BACKREAD_BASE_URL", lane.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", lane.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", lane.vendor)
    return lane


def connection(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    given = json.dumps({"conn_type": "backread", **fields})
    monkeypatch.setenv("AIRFLOW_CONN_BACKREAD_DEFAULT", given)


@pytest.mark.parametrize("field", ["proxy", "ca_bundle", "allow_http"])
def test_a_connection_without_a_host_leads_the_secret_nowhere(
    airflow_home, environment, elsewhere, monkeypatch, tmp_path, capsys, field
):
    value = {"proxy": elsewhere.url, "ca_bundle": str(tmp_path / "ca.pem"), "allow_http": True}
    connection(monkeypatch, extra={field: value[field], "max_retries": 0})
    said = f"has no host, so it may not set {field}; give it a host and a password"
    with pytest.raises(AirflowFailException, match=said):
        BackreadHook().get_conn()
    ok, told = BackreadHook().test_connection()
    assert not ok
    assert said in told
    done = run_dag(
        airflow_home,
        f"no_host_{field}",
        f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats", retries=3)',
    )
    assert states(done) == {"chats": "failed"}
    shown = capsys.readouterr().out
    assert said in shown
    assert environment.secret not in shown
    assert elsewhere.requests == []
    assert environment.calls().count == 0


@pytest.mark.parametrize("password", [None, ""])
def test_a_host_without_a_password_gets_no_secret(
    airflow_home, environment, elsewhere, monkeypatch, password
):
    connection(monkeypatch, host=elsewhere.url, password=password)
    with pytest.raises(AirflowFailException, match="has no password; give the API secret"):
        BackreadHook().get_conn()
    assert elsewhere.requests == []


def test_without_a_host_the_environment_is_read_and_code_may_say_more(
    airflow_home, environment, elsewhere, monkeypatch
):
    connection(monkeypatch, extra={"timeout": 5, "allow_http": False, "proxy": ""})
    with BackreadHook().get_conn() as client:
        assert client.users.page(limit=1).total == 60
    # Arguments in code are the caller's own instructions.
    hook = BackreadHook(proxy=elsewhere.url, max_retries=0, outage_patience=0)
    with hook.get_conn() as client, pytest.raises(PermissionDeniedError):
        client.users.page(limit=1)
    assert len(elsewhere.requests) == 1


def shard_task(airflow_home: Path, name: str, shard: dict[str, Any]) -> dict[str, str]:
    body = f'BackreadShardOperator(task_id="shard", shard={shard!r}, retries=3)'
    return states(run_dag(airflow_home, name, body))


def test_a_shard_that_was_edited_fails_at_once(
    airflow_home, lane, connect, elsewhere, tmp_path, capsys
):
    connect(lane)
    with lane.client(rate_limit=1_000) as client:
        run_id = landing.begin(tmp_path, plan(client, shards=2))
    shard = {"folder": str(tmp_path), "run_id": run_id, "shard": 0}
    [file] = tmp_path.glob("run=*/shard=00000/shard.json")
    whole = file.read_text()
    edits = ((lane.url, elsewhere.url), ('"rate_limit": 500.0', '"rate_limit": 1000000.0'))
    for number, (before, after) in enumerate(edits):
        file.write_text(whole.replace(before, after))
        assert file.read_text() != whole
        sent = lane.calls().count
        assert shard_task(airflow_home, f"edited_{number}", shard) == {"shard": "failed"}
        shown = capsys.readouterr().out
        assert "shard 0 of 2 is not signed with this worker's API secret" in shown
        assert "plan again" in shown
        assert lane.calls().count == sent
    assert elsewhere.requests == []
    file.write_text(whole)
    assert shard_task(airflow_home, "whole", shard) == {"shard": "success"}


def test_a_shard_from_before_the_secret_changed_says_plan_again(
    airflow_home, lane, connect, monkeypatch, tmp_path, capsys
):
    with lane.client() as client:
        run_id = landing.begin(tmp_path, plan(client, shards=1))
    sent = lane.calls().count
    extra = {"vendor": lane.vendor}
    connection(monkeypatch, host=lane.url, password="mock_the_new_one", extra=extra)
    shard = {"folder": str(tmp_path), "run_id": run_id, "shard": 0}
    assert shard_task(airflow_home, "secret_changed", shard) == {"shard": "failed"}
    assert "was planned with another secret; plan again" in capsys.readouterr().out
    assert lane.calls().count == sent
