"""Privacy in landing: what shards leave out, and which runs may share a folder."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from backread import ConfigurationError, LandingError, landing, plan
from backread.landing import Landed
from backread.testing import MockServer, World

KEY, OTHER_KEY = bytes(range(7, 39)), bytes(range(99, 131))


@pytest.fixture
def lane(backread_server: MockServer) -> Any:
    with backread_server.lane(world=World(seed=5, users=40, messages_per_user=(0, 9))) as lane:
        yield lane


def key_file(folder: Path, key: bytes, name: str) -> Path:
    """A private file with the key."""
    path = folder / name
    path.write_bytes(base64.b64encode(key))
    path.chmod(0o600)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return key_file(tmp_path, KEY, "key")


def land(lane: Any, folder: Path, *choices: dict[str, Any], resource: Any = "messages") -> Any:
    """Commits a run of two shards, each landed with a choice, the last one for all others."""
    with lane.client() as client:
        shards = 1 if resource == "users" else 2
        planned = plan(client, resource=resource, shards=shards)
        landing.begin(folder, planned)
        landed = [
            landing.land(folder, shard, **choices[min(shard.index, len(choices) - 1)])
            for shard in planned
        ]
        # As a scheduler passes them on.
        landed = [Landed.from_json(each.to_json()) for each in landed]
        return landing.commit(folder, planned.plan_id, landed)


def test_a_landed_run_has_the_pseudonyms_of_a_mirror(lane, tmp_path, key):
    from backread import Mirror

    chosen = {"pseudonymise": key, "drop_bodies": True}
    mirror = Mirror(tmp_path / "chats", **chosen)
    with lane.client() as client:
        mirror.sync(client)
    for resource in ("users", "messages"):
        run = land(lane, tmp_path / "landed", chosen, resource=resource)
        assert run == landing.runs(tmp_path / "landed")[-1]
        assert json.loads(run.privacy)["drop_bodies"] is True
        assert base64.b64encode(KEY).decode() not in repr(run)
        table = landing.dataset(tmp_path / "landed", run).to_table()
        names = [name for name in table.column_names if name != "user_attributes"]
        named = ", ".join(names)
        held = mirror.sql(f"SELECT {named} FROM {resource} ORDER BY ALL").to_arrow_table()
        order = [(name, "ascending") for name in ("user_id", "id") if name in names]
        ours = table.select(names).sort_by(order).to_pylist()
        theirs = held.sort_by(order).to_pylist()
        assert ours == theirs
        assert any((row.get("email") or row.get("sender_email")) for row in ours)
    assert all(row["body"] is None for row in ours)


def test_no_landed_byte_names_a_person(lane, tmp_path, key):
    folder = tmp_path / "landed"
    land(lane, folder, {"pseudonymise": key, "drop_bodies": True}, resource="users")
    content = b"\n".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).lower()
    users = [lane.world.user(user_id) for user_id in lane.world.user_ids()]
    named = {user[name] for user in users for name in ("name", "email", "reference")}
    named = {text for text in named if text and len(text) > 7}
    assert len(named) > 20
    assert [text for text in named if text.lower().encode() in content] == []


def test_the_runs_of_a_folder_have_one_choice(lane, tmp_path, key):
    folder, other = tmp_path / "landed", key_file(tmp_path, OTHER_KEY, "other")
    land(lane, folder, {"pseudonymise": key})
    asked = sum(lane.counts().values())
    for choice, why in (
        ({}, "none of these"),
        ({"pseudonymise": other}, "another key"),
        ({"pseudonymise": key, "redact": True}, "pass the same"),
    ):
        with lane.client() as client:
            planned = plan(client, shards=1)
            landing.begin(folder, planned)
            asked = sum(lane.counts().values())
            with pytest.raises(LandingError, match=why):
                landing.land(folder, planned[0], **choice)
        assert sum(lane.counts().values()) == asked
    assert land(lane, folder, {"pseudonymise": key}).number == 2
    # Nor do the shards of one run differ.
    for second in ({}, {"pseudonymise": other}):
        with pytest.raises(LandingError, match="different keys or choices"):
            land(lane, tmp_path / "new", {"pseudonymise": key}, second)
    assert landing.runs(tmp_path / "new") == []
    assert land(lane, tmp_path / "plain", {}).privacy is None
    with pytest.raises(LandingError, match="land into a new folder"):
        land(lane, tmp_path / "plain", {"pseudonymise": key})


def test_without_the_key_nothing_is_read(lane, tmp_path):
    with lane.client() as client:
        planned = plan(client, shards=1)
        asked = sum(lane.counts().values())
        with pytest.raises(ConfigurationError, match="the key file"):
            landing.land(tmp_path / "landed", planned[0], pseudonymise=tmp_path / "none")
    assert sum(lane.counts().values()) == asked
