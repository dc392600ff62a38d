"""Shards that come as JSON: read only where they were planned with the secret that is sent."""

import json
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from backread import Client, ConfigurationError, LandingError, Plan, Shard, landing, plan
from backread.testing import Lane, MockServer, World
from helpers.api_rows import paged, users
from helpers.command_line import settings_of
from helpers.debug_output import error_output, traceback_with_locals
from helpers.scripted_server import ScriptedServer, answer

UNSIGNED = r"not signed with this worker's API secret.*; plan again$"


@dataclass
class Worker:
    """A worker whose environment names ``lane``; ``elsewhere`` is a port that must hear nothing."""

    lane: Lane
    elsewhere: ScriptedServer

    def planned(self, **options: Any) -> Plan[Any]:
        with self.lane.client(**options) as client:
            return plan(client, shards=2)

    def refuses(
        self, call: Callable[[], Any], text: str = UNSIGNED, error: Any = None
    ) -> Exception:
        sent = self.lane.calls().count
        with pytest.raises(error or ConfigurationError, match=text) as caught:
            call()
        assert self.elsewhere.requests == []
        assert self.lane.calls().count == sent
        assert self.lane.secret not in error_output(caught.value)
        return caught.value


@pytest.fixture
def worker(backread_server: MockServer, scripted: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    world = World(seed=5, users=40, messages_per_user=(0, 5))
    with backread_server.lane(world=world) as lane:
        for name, value in settings_of(lane).items():
            monkeypatch.setenv(name, value)
        yield Worker(lane, scripted(lambda request: answer(403)))


def edited(text: str | bytes, *path: str, value: Any) -> str:
    """The JSON of a shard with another value at that place."""
    document = json.loads(text)
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return json.dumps(document)


CHANGES = [
    (("settings", "base_url"), "ELSEWHERE"),
    (("settings", "base_url"), "http://x@127.0.0.1:PORT"),
    (("settings", "vendor"), "other"),
    (("settings", "api_secret"), "mock_other"),
    (("settings", "options", "proxy"), "ELSEWHERE"),
    (("settings", "options", "ca_bundle"), "/etc/ssl/authority.pem"),
    (("settings", "options", "allow_http"), True),
    (("settings", "options", "user_agent"), "a\r\nX-Injected: 1"),
    (("settings", "options", "rate_limit"), 1e9),
    (("settings",), {}),
    (("resource",), "users"),
    (("offset",), 7),
    (("signature",), "0" * 64),
    (("signature",), "\ud800é"),
]


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=[f"{'.'.join(p)}={v}" for p, v in CHANGES])
def test_an_edited_shard_of_a_landing_folder_sends_nothing_anywhere(worker, tmp_path, path, value):
    if isinstance(value, str):
        value = value.replace("ELSEWHERE", worker.elsewhere.url)
        value = value.replace("PORT", str(worker.elsewhere.port))
    run = landing.begin(tmp_path, worker.planned())
    file = tmp_path / f"run={run}" / "shard=00001" / "shard.json"
    whole = file.read_text()
    file.write_text(edited(whole, *path, value=value))
    worker.refuses(lambda: landing.land(tmp_path, landing.load_shard(tmp_path, run, 1)))
    assert not list(tmp_path.rglob("*.parquet"))
    # As it was, it is read.
    file.write_text(whole)
    assert landing.land(tmp_path, landing.load_shard(tmp_path, run, 1)).rows > 0


def test_one_shards_signature_signs_no_other(worker):
    first, second = [json.loads(shard.to_json()) for shard in worker.planned()]
    for changed in (
        {**first, "signature": second["signature"]},
        {**first, "ids": second["ids"], "users": second["users"]},
    ):
        worker.refuses(Shard.from_json(json.dumps(changed)).read)


def test_a_shard_is_read_from_where_it_was_planned(worker, monkeypatch):
    """Signed, it is trusted for all its settings, whatever the worker's own base URL is."""
    texts = [shard.to_json() for shard in worker.planned(user_agent="planner/1")]
    monkeypatch.setenv("BACKREAD_BASE_URL", worker.elsewhere.url)
    monkeypatch.setenv("BACKREAD_VENDOR", "other")
    # What carries JSON may write it anew.
    texts = [json.dumps(json.loads(text), indent=3, sort_keys=True) for text in texts]
    read = [message.id for text in texts for message in Shard.from_json(text).read()]
    assert len(read) == worker.lane.world.total_messages
    assert worker.elsewhere.requests == []


def test_a_shard_from_before_the_secret_changed_says_plan_again(worker, monkeypatch, tmp_path):
    shard = Shard.from_json(worker.planned()[0].to_json())
    file = tmp_path / "secret"
    file.write_text(f"{worker.lane.secret}\n")
    monkeypatch.setenv("BACKREAD_API_SECRET", "mock_the_new_one")
    error = worker.refuses(shard.read)
    assert "mock_the_new_one" not in error_output(error) + traceback_with_locals(error)
    worker.refuses(pickle.loads(pickle.dumps(shard)).read)
    assert list(shard.read(secret_file=file))
    file.write_text("mock_of_a_file")
    error = worker.refuses(lambda: shard.read(secret_file=file))
    assert "mock_of_a_file" not in traceback_with_locals(error)


def test_what_code_says_keeps_working(worker, scripted, monkeypatch):
    """A client, a pickle: the caller's own instructions, also with a secret of another service."""
    text = worker.planned()[0].to_json()
    moved = edited(text, "settings", "base_url", value=worker.elsewhere.url)
    with worker.lane.client() as client:
        assert list(Shard.from_json(moved).read(client))
    server = scripted(paged(users(5)))
    with Client(server.url, "the-planner-s", server.vendor) as client:
        [shard] = plan(client, resource="users")
    monkeypatch.setenv("BACKREAD_API_SECRET", "the-worker-s")
    assert len(list(pickle.loads(pickle.dumps(shard)).read())) == 5
    assert server.requests[-1].headers["authorization"] == "Bearer the-worker-s"
    worker.refuses(Shard.from_json(shard.to_json()).read)
    # Data stays data, however it travels on.
    worker.refuses(pickle.loads(pickle.dumps(Shard.from_json(shard.to_json()))).read)
    assert worker.elsewhere.requests == []


def test_another_shard_in_the_place_of_one_is_refused(worker, tmp_path):
    """Also by a link: a run's shards are those of its plan, each in its place."""
    run = landing.begin(tmp_path / "one", worker.planned())
    other = landing.begin(tmp_path / "two", worker.planned())
    of_run, of_other = tmp_path / "one" / f"run={run}", tmp_path / "two" / f"run={other}"
    place = of_run / "shard=00000" / "shard.json"

    def refuses(said: str) -> None:
        worker.refuses(lambda: landing.load_shard(tmp_path / "one", run, 0), said, LandingError)

    for source in (of_run / "shard=00001" / "shard.json", of_other / "shard=00000" / "shard.json"):
        place.unlink()
        shutil.copy(source, place)
        refuses(r"is damaged \(it is a different shard\); make a new plan")
        place.unlink()
        place.symlink_to(source)
        refuses("symbolic link")
    # A folder that was moved whole is the same landing.
    shutil.move(tmp_path / "two", tmp_path / "moved")
    assert list(landing.load_shard(tmp_path / "moved", other, 0).read())


def test_a_field_of_another_type_is_no_shard(worker):
    text = worker.planned()[0].to_json()
    for name, value in (
        ("index", "../../../somewhere"),
        ("index", -1),
        ("count", 2.0),
        ("users", None),
        ("plan_id", 7),
        ("resource", "chats"),
        ("signature", None),
        ("ids", 3),
    ):
        odd = edited(text, name, value=value)
        worker.refuses(lambda odd=odd: Shard.from_json(odd), "not a shard", ValueError)
