"""Landing: shards in files of their own, runs of them, privacy, and shards that are data."""

import base64
import concurrent.futures
import contextlib
import json
import pickle
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest

from backread import (
    Client,
    ConfigurationError,
    ConnectError,
    LandingError,
    Mirror,
    MirrorError,
    Plan,
    RateLimitError,
    ServerError,
    Shard,
    landing,
    plan,
)
from backread._files.unfinished import Unfinished
from backread.landing.storage import Storage
from backread.testing import Lane, MockServer, World
from helpers.api_rows import paged, users
from helpers.command_line import settings_of
from helpers.debug_output import error_output, traceback_with_locals
from helpers.file_traces import state, traces
from helpers.scripted_server import ScriptedServer, answer
from helpers.shards import expected


def land_all(lane: Lane, folder: Path, resource: Any = "messages", shards: int = 3) -> Any:
    with lane.client() as client:
        planned = plan(client, resource=resource, shards=shards)
        landing.begin(folder, planned)
        return planned, [landing.land(folder, shard) for shard in planned]


def rows(folder: Path, run: landing.Committed) -> Counter[tuple[int | None, int]]:
    table = landing.dataset(folder, run).to_table().to_pylist()
    return Counter((row.get("user_id"), row["id"]) for row in table)


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_a_committed_run_holds_each_row_once(lane, tmp_path, resource):
    planned, landed = land_all(lane, tmp_path, resource)
    assert landing.runs(tmp_path) == []
    run = landing.commit(tmp_path, planned.plan_id, landed)
    assert landing.runs(tmp_path) == [run]
    assert rows(tmp_path, run) == expected(lane.world, resource)
    count = expected(lane.world, resource).total()
    assert (run.number, run.resource, run.rows) == (1, resource, count)
    assert (run.report.certificate, run.report.distinct) == ("linked", run.rows)
    assert [(tmp_path / file).stat().st_size for file in run.files] == [one.size for one in landed]
    # Nothing is left of what was written on the way.
    assert not list(tmp_path.rglob("_*"))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 1 + 3 + 3 + 1
    assert not [path for path in files if lane.secret.encode() in path.read_bytes()]
    with pytest.raises(LandingError, match="of run 1 is missing; check that this is the folder"):
        landing.dataset(tmp_path / "other", run)


def test_a_shard_landed_twice_counts_once(lane, tmp_path):
    planned, landed = land_all(lane, tmp_path)
    with lane.client() as client:
        again = [landing.land(tmp_path, shard, client=client) for shard in planned]
    assert not {one.file for one in landed} & {one.file for one in again}
    run = landing.commit(tmp_path, planned.plan_id, [*again, *landed])
    assert run.files == tuple(one.file for one in again)
    assert rows(tmp_path, run) == expected(lane.world, "messages")
    # Committed is committed, whoever says so again.
    assert landing.commit(tmp_path, planned.plan_id, landed) == run
    assert landing.runs(tmp_path) == [run]


def test_a_run_lacks_nothing_or_is_not_committed(lane, tmp_path):
    planned, landed = land_all(lane, tmp_path)

    def refuses(given: list[landing.Landed], said: str, run_id: str = planned.plan_id) -> None:
        with pytest.raises(LandingError, match=said):
            landing.commit(tmp_path, run_id, given)
        assert landing.runs(tmp_path) == []

    refuses(landed[1:2], r"of its 3 shards, these were not landed: 0, 2")
    broken = tmp_path / landed[1].file
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-1])
    refuses(landed, r"is missing, or has another size.*; land shard 1 again")
    broken.unlink()
    refuses(landed, r"is missing, or has another size.*; land shard 1 again")
    other, _ = land_all(lane, tmp_path)
    refuses(landed, f"was landed for the run {planned.plan_id}", other.plan_id)
    broken.write_bytes(whole)
    assert landing.commit(tmp_path, planned.plan_id, landed).number == 1


def test_workers_need_the_folder_the_run_and_a_number(lane, tmp_path):
    told: list[int] = []

    def land(index: int) -> landing.Landed:
        shard = landing.load_shard(tmp_path, run_id, index)
        return landing.land(tmp_path, shard, client=client, on_progress=told.append)

    with lane.client() as client:
        planned = plan(client, shards=3)
        run_id = landing.begin(tmp_path, planned)
        assert landing.begin(tmp_path, planned) == run_id
        assert landing.load_plan(tmp_path, run_id) == planned
        landed = [land(index) for index in range(3)]
    assert told[-1] == landed[-1].rows
    sent = [one.to_json() for one in landed]
    assert max(map(len, sent)) < 2_000
    again = [landing.Landed.from_json(each) for each in sent]
    assert again == landed
    assert landing.commit(tmp_path, run_id, again).rows == lane.world.total_messages


def test_commits_at_once_get_numbers_of_their_own(lane, tmp_path):
    prepared = [land_all(lane, tmp_path, shards=1) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        commits = [pool.submit(landing.commit, tmp_path, p.plan_id, made) for p, made in prepared]
    runs = sorted((each.result() for each in commits), key=lambda run: run.number)
    assert [run.number for run in runs] == [1, 2, 3, 4]
    assert landing.runs(tmp_path) == runs
    # Runs after a number are had without reading the others.
    (tmp_path / "manifests" / "00000001.json").write_text("damaged")
    assert landing.runs(tmp_path, after=1) == runs[1:]


def test_a_reading_that_fails_leaves_nothing(lane, tmp_path):
    with lane.client(max_retries=0) as client:
        planned = plan(client, shards=2)
        for fault, error in (
            ("messages: status(404); user: status(500)", ServerError),
            ("messages: reset()", ConnectError),
            ("messages: status(429, retry_after=30)", RateLimitError),
        ):
            lane.fault(fault)
            # And it is not blamed on the folder.
            with pytest.raises(error):
                landing.land(tmp_path, planned[0], client=client)
            lane.clear_faults()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_uri_is_a_folder_too(lane, tmp_path):
    folder: Any = tmp_path.as_uri()
    planned, landed = land_all(lane, folder)
    run = landing.commit(folder, planned.plan_id, landed)
    assert landing.runs(str(tmp_path)) == [run]
    assert rows(folder, run) == expected(lane.world, "messages")


def test_what_cannot_be_used_is_said(lane, tmp_path):
    with pytest.raises(ValueError, match="a run id is the result of begin"):
        landing.load_plan(tmp_path, "../other")
    planned, landed = land_all(lane, tmp_path, shards=1)
    landing.commit(tmp_path, planned.plan_id, landed)
    manifest = tmp_path / "manifests" / "00000001.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 9}))
    blocked = tmp_path / "file"
    blocked.write_text("")
    for call, said in (
        (lambda: landing.load_plan(tmp_path, "20260101T000000Z-0"), "has no run=.*json; begin"),
        (lambda: landing.runs("nothing://here"), "pass a path, or a URI that pyarrow supports"),
        (lambda: landing.load_shard(tmp_path, planned.plan_id, 7), r"has no run=.*shard=00007"),
        (lambda: landing.runs(tmp_path), "its format is not 1; upgrade"),
        (lambda: landing.begin(blocked, planned), "cannot be created"),
        (lambda: landing.runs("s3://KEY:a@b:hidden@bucket/chats"), "URI for bucket contains keys"),
    ):
        with pytest.raises(LandingError, match=said) as caught:
            call()
        assert "hidden" not in str(caught.value)


def test_a_file_in_a_store_is_there_in_full_or_not_at_all(tmp_path):
    """Where there are no hard links; such a store is a local one here."""
    storage = Storage(tmp_path)
    storage.is_local = False
    storage.make_folder("manifests")
    name = "manifests/1.json"
    with contextlib.suppress(KeyboardInterrupt), storage.fresh(name) as path:
        Path(path).write_text("{")
        raise KeyboardInterrupt
    assert storage.names("manifests") == []
    assert (storage.create(name, "{}"), storage.create(name, "[]")) == (True, False)
    assert storage.read(name) == b"{}"
    assert storage.names("manifests") == ["1.json"]


# --- privacy --------------------------------------------------------------------------------------

KEY, OTHER_KEY = bytes(range(7, 39)), bytes(range(99, 131))


def key_file(path: Path, key: bytes) -> Path:
    """A private file with the key."""
    path.write_bytes(base64.b64encode(key))
    path.chmod(0o600)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return key_file(tmp_path / "key", KEY)


def land(lane: Any, folder: Path, *choices: dict[str, Any], resource: Any = "messages") -> Any:
    """Commits a run of a shard for each choice."""
    with lane.client() as client:
        planned = plan(client, resource=resource, shards=len(choices))
        landing.begin(folder, planned)
        landed = [
            landing.land(folder, shard, **choice)
            for shard, choice in zip(planned, choices, strict=True)
        ]
        return landing.commit(folder, planned.plan_id, landed)


def test_a_landed_run_has_the_pseudonyms_of_a_mirror(lane, tmp_path, key):
    chosen: dict[str, Any] = {"pseudonymise": key, "drop_bodies": True}
    mirror = Mirror(tmp_path / "chats", **chosen)
    with lane.client() as client:
        mirror.sync(client)
    for resource, order, named in (
        ("users", "id", "email"),
        ("messages", "user_id, id", "sender_email"),
    ):
        run = land(lane, tmp_path / "landed", chosen, resource=resource)
        assert run == landing.runs(tmp_path / "landed")[-1]
        assert json.loads(run.privacy)["drop_bodies"] is True
        assert base64.b64encode(KEY).decode() not in repr(run)
        table = landing.dataset(tmp_path / "landed", run).to_table()
        ours = duckdb.from_arrow(table).order(order).to_arrow_table().to_pylist()
        query = f"SELECT {', '.join(table.column_names)} FROM {resource} ORDER BY {order}"
        assert ours == mirror.sql(query).to_arrow_table().to_pylist()
        assert any(row[named] for row in ours)
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
    folder, new, other = tmp_path / "landed", tmp_path / "new", key_file(tmp_path / "o", OTHER_KEY)
    land(lane, folder, {"pseudonymise": key})
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
            land(lane, new, {"pseudonymise": key}, second)
    assert landing.runs(new) == []
    assert land(lane, tmp_path / "plain", {}).privacy is None
    with pytest.raises(LandingError, match="land into a new folder"):
        land(lane, tmp_path / "plain", {"pseudonymise": key})


# --- forgetting a user ----------------------------------------------------------------------------


MARKS = ["name-Zoë-51c", "mail-Zoë-51c", "body-Zoë-51c"]


@pytest.fixture
def who(lane: Lane) -> int:
    """A user with texts of her own."""
    user_id = next(each for each in lane.world.user_ids() if lane.world.message_ids(each))
    lane.world.edit_user(user_id, name=MARKS[0], email=MARKS[1])
    lane.world.edit_message(user_id, lane.world.message_ids(user_id)[0], body=MARKS[2])
    return user_id


@pytest.fixture
def synced(mirror: Mirror, lane: Lane, who: int) -> Mirror:
    with lane.client() as client:
        mirror.sync(client)
    return mirror


def begun(lane: Lane, folder: Path, resource: Any) -> tuple[str, list[landing.Landed]]:
    with lane.client() as client:
        planned = plan(client, resource=resource, shards=3)
        run_id = landing.begin(folder, planned)
        return run_id, [landing.land(folder, shard) for shard in planned]


def newest_rows(folder: Path) -> list[dict[str, Any]]:
    return landing.dataset(folder, landing.runs(folder)[-1]).to_table().to_pylist()


@pytest.mark.parametrize(("resource", "column"), [("users", "id"), ("messages", "user_id")])
def test_a_run_loses_the_rows_of_the_user_and_no_other(
    synced, lane, who, tmp_path, resource, column
):
    folder = tmp_path / "landed"
    run_id, landed = begun(lane, folder, resource)
    files = landing.commit(folder, run_id, landed).files
    before = newest_rows(folder)
    kept = [row for row in before if row[column] != who]
    assert traces(folder, *MARKS)

    report = synced.forget(who, landings=[folder])

    assert traces(folder, *MARKS) == traces(synced.folder, *MARKS) == []
    assert newest_rows(folder) == kept
    [run] = landing.runs(folder)
    of_files = [pyarrow.parquet.read_metadata(folder / name).num_rows for name in files]
    assert (run.files, run.rows, len(kept)) == (files, len(kept), sum(of_files))
    assert (report.landing_rows, report.landing_files) == (len(before) - len(kept), 1)
    # Committing again returns the earlier commit.
    assert landing.commit(folder, run_id, landed) == run
    assert traces(folder, *MARKS) == []


def test_what_is_landed_but_not_committed_loses_the_rows_too(synced, lane, who, tmp_path):
    folder = tmp_path / "landed"
    run_id, landed = begun(lane, folder, "messages")
    assert traces(folder, *MARKS)
    synced.forget(who, landings=[folder])
    assert traces(folder, *MARKS) == []
    with pytest.raises(LandingError, match=r"land shard \d again"):
        landing.commit(folder, run_id, landed)


def test_a_user_who_is_only_landed_is_known(synced, lane, tmp_path):
    [who] = lane.world.add_users(1)
    folder = tmp_path / "landed"
    landing.commit(folder, *begun(lane, folder, "users"))
    with pytest.raises(MirrorError, match="holds nothing of user"):
        synced.forget(who)
    assert synced.forget(who, landings=[folder]).landing_rows == 1


def test_a_folder_that_is_no_landing_is_refused_before_anything_changes(
    synced, lane, who, tmp_path
):
    folder, elsewhere = tmp_path / "landed", tmp_path / "elsewhere"
    landing.commit(folder, *begun(lane, folder, "users"))
    elsewhere.mkdir()
    (elsewhere / "notes.txt").write_text("mine")
    before = state(tmp_path)
    for other in (elsewhere, tmp_path / "none", synced.folder):
        with pytest.raises(LandingError, match="is not a landing folder"):
            synced.forget(who, landings=[folder, other])
    with pytest.raises(TypeError, match="landings must be a list of folders"):
        synced.forget(who, landings=str(folder))
    assert state(tmp_path) == before


def test_a_worker_that_is_landing_is_said_and_a_killed_one_s_file_removed(
    synced, lane, who, tmp_path
):
    folder = tmp_path / "landed"
    landing.commit(folder, *begun(lane, folder, "messages"))
    shard = (folder / landing.runs(folder)[0].files[0]).parent
    left = shard / ".attempt.parquet.0123456789abcdef.unfinished"
    left.write_text(MARKS[2])
    before = state(synced.folder)
    with Unfinished(shard / "attempt=0.parquet") as unfinished:
        unfinished.file.write(b"newest_rows")
        with pytest.raises(LandingError, match="is being written; wait until all workers"):
            synced.forget(who, landings=[folder])
        assert state(synced.folder) == before
    (shard / "attempt=0.parquet").unlink()
    synced.forget(who, landings=[folder])
    assert traces(folder, *MARKS) == []
    assert not left.exists()


# --- shards that come as JSON are read only where planned with the secret that is sent ------------


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
