"""The plan, shard and commit operators: one reading by many tasks, landed as Parquet."""

import base64
from typing import Any

import pytest

from backread import Client, landing
from backread.errors import LandingError
from backread.testing import Lane, World
from helpers import fake_airflow
from helpers.fake_airflow import AirflowFailException, connect, run
from helpers.scripted_server import ScriptedServer, answer

pytest.importorskip("pyarrow")

airflow = fake_airflow.airflow
no_connections = fake_airflow.no_connections

pytestmark = pytest.mark.backread(world=World(seed=7, users=30, messages_per_user=(0, 20)))


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


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        ("BackreadPlanOperator", {"folder": "landing"}, "an absolute path"),
        ("BackreadPlanOperator", {"resource": "chats"}, "resource must be 'users' or 'messages'"),
        ("BackreadPlanOperator", {"workers": "many"}, "workers must be a whole number"),
        ("BackreadCommitOperator", {"folder": "landing", "landed": []}, "an absolute path"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(airflow, kind, arguments, said):
    with pytest.raises(ValueError, match=said):
        getattr(airflow, kind)(task_id="task", **{"folder": "/srv/landed", **arguments})


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
