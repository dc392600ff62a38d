"""The operators' arguments for privacy, by ``DAG.test``."""

import base64

import pytest
from dag_files import states

from backread import Mirror, landing


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(base64.b64encode(bytes(range(7, 39))))
    path.chmod(0o600)
    return path


def test_a_sync_stores_pseudonyms(run, lane, connect, tmp_path, key):
    connect(lane)
    chosen = f'pseudonymise="{key}", drop_bodies=True'
    done = run(
        "private_sync",
        f'BackreadSyncOperator(task_id="chats", mirror="{tmp_path}/chats", {chosen})',
    )
    assert states(done) == {"chats": "success"}
    mirror = Mirror(tmp_path / "chats")
    named = "name <> '' AND NOT starts_with(name, 'name-')"
    assert mirror.sql(f"SELECT count(*) FROM users WHERE {named}").fetchall() == [(0,)]
    assert mirror.sql("SELECT count(body) FROM messages").fetchall() == [(0,)]


def test_shards_land_pseudonyms(run, lane, connect, tmp_path, key):
    connect(lane)
    folder = tmp_path / "landed"
    done = run(
        "private_shards",
        f"""
        plan = BackreadPlanOperator(task_id="plan", folder="{folder}", shards=2)
        shards = BackreadShardOperator.partial(
            task_id="shard", pseudonymise="{key}", redact=True
        ).expand(shard=plan.output)
        BackreadCommitOperator(task_id="commit", folder="{folder}", landed=shards.output)
        """,
    )
    assert set(states(done).values()) == {"success"}
    [committed] = landing.runs(folder)
    assert committed.privacy is not None
    names = landing.dataset(folder, committed).to_table()["sender_email"].to_pylist()
    assert any(names)
    assert all(name.startswith("email-") for name in names if name)
