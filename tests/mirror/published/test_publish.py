"""The published snapshots: which files are written again, and files that are damaged or links."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from backread import Client, LandingError, Mirror, MirrorError, landing, plan
from backread.mirror.published import manifest, publish
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, Row, batch, data_files, ended, rows, sync
from helpers.shards import land


def snapshots(mirror: Mirror) -> set[str]:
    """The names of the snapshots that are there."""
    return {each.name for each in (mirror.folder / "published").glob("[0-9]*")}


def current(mirror: Mirror) -> Path:
    return (mirror.folder / "published" / "current").resolve()


def by_path(mirror: Mirror, query: str) -> list[tuple[Any, ...]]:
    """A query without backread; ``{table}`` is a pattern."""
    path = str(mirror.folder / "published" / "current").replace("'", "''")
    filled = query.replace("{", f"'{path}/").replace("}", "/*.parquet'")
    with duckdb.connect() as connection:
        return connection.execute(filled).fetchall()


def test_replaced_snapshots_stay_for_their_readers_and_go_in_time(mirror, server, monkeypatch):
    for _ in range(3):
        sync(mirror, server)
    assert timedelta(minutes=15) <= manifest.RETIRED_FOR
    assert snapshots(mirror) == {"00000001", "00000002", "00000003"}
    retired = json.loads((current(mirror) / "snapshot.json").read_bytes())["retired"]
    assert retired.keys() == {"00000001", "00000002"}
    monkeypatch.setattr(manifest, "RETIRED_FOR", timedelta(0))
    sync(mirror, server)
    assert snapshots(mirror) == {"00000004"}


def test_table_that_grows_is_cut_into_more_files_and_one_that_shrinks_into_fewer(
    mirror, monkeypatch
):
    # A message takes about 200 bytes in memory.
    monkeypatch.setattr(publish, "FILE_BYTES", 2000)
    sizes = {}
    for count in (0, 5, 25, 70):
        users = [{"id": each} for each in range(count)]
        messages = [{"user_id": each, "id": each} for each in range(count)]
        BatchSource(batch(users, messages, swept="uncertified")).sync_into(mirror.folder)
        sizes[count] = len(data_files(mirror, "messages"))
        # Each row is in one file, and in one only, also for who reads by path.
        expected = [(each,) for each in range(count)]
        assert rows(mirror, "SELECT id FROM messages ORDER BY id") == expected
        for table in ("messages", "users"):
            assert by_path(mirror, f"SELECT id FROM {{{table}}} ORDER BY id") == expected
    assert [sizes[0], sizes[5], sizes[25]] == [0, 1, 2]
    assert 6 <= sizes[70] <= 9
    for left in (3, 0):
        mirror.forget(*range(left, 70))
        assert len(data_files(mirror, "messages")) == (left > 0)
        ids = [(each,) for each in range(left)]
        assert by_path(mirror, "SELECT id FROM {messages} ORDER BY id") == ids


USERS = range(64)


def told(mirror: Mirror, messages: list[Row]) -> None:
    """A sync of lists whose growing ends showed these messages and proved that all others stay."""
    users = [{"id": each} for each in USERS]
    ends = [ended(each, kind="end") for each in USERS]
    BatchSource(batch(users, messages, swept="uncertified", lists=ends)).sync_into(mirror.folder)


def seeded(mirror: Mirror) -> list[Row]:
    """Fills the mirror with so many messages that a few changes are few in every part."""
    ids = [(user, user * 1000 + each) for user in USERS for each in range(50)]
    said: list[Row] = [{"user_id": user, "id": each, "body": "as it was"} for user, each in ids]
    told(mirror, said)
    return said


def test_only_the_files_of_users_with_changes_are_written_again(mirror, monkeypatch):
    monkeypatch.setattr(publish, "FILE_BYTES", 80_000)
    said = seeded(mirror)
    before = data_files(mirror, "messages")
    users = data_files(mirror, "users")
    assert len(before) > 4
    now = [each | {"body": "anew"} for each in said if each["user_id"] == 7]
    told(mirror, now)
    after = data_files(mirror, "messages")
    assert len(before & after) == len(before) - 1
    assert len(after) == len(before)
    assert data_files(mirror, "users") == users
    assert rows(mirror, "SELECT DISTINCT user_id FROM messages WHERE body = 'anew'") == [(7,)]
    bodies = "SELECT count(*), count(DISTINCT (user_id, id)) FROM"
    assert rows(mirror, f"{bodies} messages") == [(len(said), len(said))]
    assert by_path(mirror, f"{bodies} {{messages}}") == [(len(said), len(said))]
    # Asked for alone, each user has its rows.
    assert [len(mirror.conversation(user)) for user in USERS] == [50] * len(USERS)


class Killed(BaseException):
    """Ends a publication where it stands."""


@pytest.mark.parametrize(
    "step", ["write_manifest", "point_current", "write_views_database", "remove_unneeded"]
)
def test_publication_killed_at_any_step_is_done_by_the_next_sync(mirror, monkeypatch, step):
    said = seeded(mirror)
    done = getattr(publish, step)

    def killed(*arguments: Any) -> None:
        done(*arguments)
        raise Killed

    with monkeypatch.context() as broken:
        # Killed before the next step, too.
        broken.setattr(publish, step, killed)
        with pytest.raises(Killed):
            told(mirror, [said[0] | {"body": "anew"}])
    changed = rows(mirror, "SELECT count(*) FROM messages WHERE body = 'anew'")
    assert changed in ([(0,)], [(1,)])
    assert rows(mirror, "SELECT count(*) FROM messages") == [(len(said),)]
    told(mirror, [])
    assert rows(mirror, "SELECT count(*) FROM messages WHERE body = 'anew'") == [(1,)]
    names = {each.name for each in (mirror.folder / "published").iterdir()}
    retired = json.loads((current(mirror) / "snapshot.json").read_bytes())["retired"]
    assert names == {"current", current(mirror).name, *retired}


# --- damaged files, and links ---------------------------------------------------------------------


NAMES = ["../users.parquet", "/etc/passwd", "users.1.parquet\n", 7]
SENDERS = range(30)
COUNT = [(len(SENDERS) * 50,)]


class Manifest:
    """A manifest as it was written, and what is refused after an edit."""

    def __init__(self, file: Path, read: Callable[[], object]) -> None:
        self.file = file
        self.read = read
        self.written: dict[str, Any] = json.loads(file.read_bytes())

    def refuses(self, error: type[Exception] = MirrorError, **changes: object) -> None:
        self.file.write_text(json.dumps(self.written | changes))
        with pytest.raises(error, match="is damaged"):
            self.read()


@pytest.fixture(scope="module")
def of_mirror(tmp_path_factory: pytest.TempPathFactory, backread_server: MockServer) -> Manifest:
    mirror = Mirror(tmp_path_factory.mktemp("edited") / "mirror")
    sync(mirror, backread_server)
    file = mirror.folder / "published" / "current" / "snapshot.json"
    return Manifest(file, lambda: Mirror(mirror.folder).sql("SELECT * FROM users"))


@pytest.fixture(scope="module")
def of_landing(tmp_path_factory: pytest.TempPathFactory, backread_server: MockServer) -> Manifest:
    folder = tmp_path_factory.mktemp("edited") / "landing"
    land(folder, backread_server)
    return Manifest(folder / "manifests" / "00000001.json", lambda: landing.runs(folder))


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_manifest_names_only_files_of_its_folder(of_mirror, name):
    tables = of_mirror.written["tables"]
    for users in ([tables["users"][0] | {"name": name}], []):
        of_mirror.refuses(tables=tables | {"users": users})
    of_mirror.refuses(tables=tables | {f"{name}/..": tables["users"]})
    of_mirror.refuses(retired={str(name): "x"})


@pytest.mark.parametrize("value", [None, -1.5, "x", {}, {"users": "x"}], ids=repr)
def test_a_manifest_of_other_types_is_damaged(of_mirror, value):
    written = of_mirror.written
    of_another_type = [name for name, held in written.items() if type(held) is not type(value)]
    for name in {*of_another_type, "seen_at", "tables"} - {"format"}:
        if name not in ("seen_at", "retired") or value not in (None, {}):
            of_mirror.refuses(**{name: value})


def test_a_manifest_that_is_nested_too_deep_is_damaged(of_mirror):
    of_mirror.file.write_text("[" * 200_000)
    with pytest.raises(MirrorError, match=r"snapshot\.json is damaged \(it is nested too deep\)"):
        of_mirror.read()


def test_a_manifest_of_a_landing_names_only_files_of_its_run(of_landing):
    for name in ("number", "resource", "files", "run_id"):
        for value in (None, -1, "x", {"x": 1}):
            of_landing.refuses(LandingError, **{name: value})
    files = of_landing.written["files"]
    other = files[0].replace(of_landing.written["run_id"], "20260101T000000Z-0")
    for name in (*NAMES, "run=x/shard=00000/attempt=../../../x.parquet", other):
        for edited in ([name], [name, *files]):
            of_landing.refuses(LandingError, files=edited)


def test_what_was_landed_is_a_file_of_the_run(backread_server, tmp_path):
    """It came by way of a scheduler's database, where others may write."""
    server = backread_server
    with Client(server.url, server.secret, server.vendor) as client:
        planned = plan(client, shards=1)
        landing.begin(tmp_path, planned)
        [shard] = planned
        landed = json.loads(landing.land(tmp_path, shard, client=client).to_json())
    (tmp_path / "secret").write_bytes(b"x" * landed["size"])
    forged = landing.Landed.from_json(json.dumps(landed | {"file": "secret"}))
    with pytest.raises(LandingError, match=r"'secret' is .*not one of its files"):
        landing.commit(tmp_path, planned.plan_id, [forged])


def filled(mirror: Mirror) -> None:
    """A sync of fifty messages of each user."""
    said = [
        {"user_id": each, "id": each * 1000 + n, "body": f"text {n}"}
        for each in SENDERS
        for n in range(50)
    ]
    users = [{"id": each} for each in SENDERS]
    BatchSource(batch(users, said, swept="snapshot")).sync_into(mirror.folder)


@pytest.mark.parametrize("part", [None, 0, 0.5])
def test_a_damaged_or_missing_file_is_written_anew_by_the_next_sync(mirror, part):
    filled(mirror)
    [file] = (current(mirror) / "messages").iterdir()
    content = file.read_bytes()
    if part is None:
        file.unlink()
    else:
        file.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(MirrorError, match="sync again"):
        rows(Mirror(mirror.folder), "SELECT count(*), max(body) FROM messages")
    filled(mirror)
    assert rows(mirror, "SELECT count(*) FROM messages") == COUNT


@posix_only
def test_link_that_names_anything_but_a_snapshot_is_refused(mirror, tmp_path):
    filled(mirror)
    link = mirror.folder / "published" / "current"
    secret = tmp_path / "secret"
    shutil.copytree(link.resolve(), secret)
    for target in (secret, "../../secret", "00000001/../00000001", "snapshot.json"):
        link.unlink()
        link.symlink_to(target)
        with pytest.raises(MirrorError, match="is damaged"):
            rows(mirror, "FROM users")
    link.unlink()
    shutil.copytree(secret, link)
    with pytest.raises(MirrorError, match="copy mirrors with their symbolic links"):
        rows(mirror, "FROM users")
    shutil.rmtree(link)
    # As the first message says, the next sync publishes anew.
    filled(mirror)
    assert rows(mirror, "SELECT count(*) FROM messages") == COUNT


@posix_only
def test_link_in_a_snapshot_is_not_followed(mirror, tmp_path):
    filled(mirror)
    snapshot = current(mirror)
    [file] = (snapshot / "users").iterdir()
    moved = file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(moved)
    (snapshot / "messages" / "messages-0009.00000001.parquet").symlink_to(moved)
    with pytest.raises(MirrorError, match="not a regular file"):
        rows(Mirror(mirror.folder), "FROM users")
    filled(mirror)
    # Neither of them is in the next snapshot.
    assert not [each for each in current(mirror).rglob("*") if each.is_symlink()]
    assert rows(mirror, "SELECT count(*) FROM messages") == COUNT
    (snapshot.parent / "00000007").symlink_to(tmp_path)
    (snapshot.parent / "current").unlink()
    (snapshot.parent / "current").symlink_to("00000007")
    with pytest.raises(MirrorError, match="is not a folder"):
        rows(mirror, "FROM users")


def damages(content: bytes) -> Iterator[bytes]:
    """The file with other bytes in its pages, its metadata and its end, as after bit rot."""
    end = len(content) - 8
    metadata = end - int.from_bytes(content[end : end + 4], "little")
    pages = range(4, metadata, max(metadata // 20, 1))
    for place in (*pages, *range(metadata, metadata + 8), *range(end, len(content))):
        changed = bytearray(content)
        for each in range(place, min(place + 16, len(content))):
            changed[each] ^= 255
        yield bytes(changed)


def test_whatever_is_damaged_in_a_file_the_error_says_what_to_do(mirror):
    filled(mirror)
    [file] = (current(mirror) / "messages").iterdir()
    said = []
    for content in damages(file.read_bytes()):
        file.write_bytes(content)
        try:
            Mirror(mirror.folder).table("messages").to_arrow()
        except MirrorError as error:
            said.append(str(error))
    assert not [each for each in said if "a published file is damaged; delete it" not in each]
    # Others change statistics, or values into others.
    assert len(said) > 10


def test_what_is_damaged_past_the_first_rows_is_named_whichever_frame_reads_it(mirror):
    """Arrow's consumers raise errors of their own, with the text of the stream's."""
    with MockServer(World(seed=7, users=300, messages_per_user=99)) as service:
        sync(mirror, service)
    [file] = (current(mirror) / "messages").iterdir()
    content = bytearray(file.read_bytes())
    middle = slice(len(content) // 2, len(content) // 2 + 2_000)
    content[middle] = bytes(each ^ 0x5A for each in content[middle])
    file.write_bytes(content)
    messages = mirror.table("messages")
    for read in (messages.to_arrow, messages.to_polars, messages.to_pandas):
        with pytest.raises(MirrorError, match="a published file is damaged; delete it") as raised:
            read()
        assert str(mirror.folder) in str(raised.value)
