"""Published files that are damaged, edited or links elsewhere: refused, and written anew."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backread import Client, LandingError, Mirror, MirrorError, landing, plan
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, batch, rows, sync
from helpers.shards import land

NAMES = ["../users.parquet", "/etc/passwd", "users.1.parquet\n", 7]
USERS = range(30)
COUNT = [(len(USERS) * 50,)]


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


def current(mirror: Mirror) -> Path:
    return (mirror.folder / "published" / "current").resolve()


def seeded(mirror: Mirror) -> None:
    """A sync of fifty messages of each user."""
    said = [
        {"user_id": each, "id": each * 1000 + n, "body": f"text {n}"}
        for each in USERS
        for n in range(50)
    ]
    users = [{"id": each} for each in USERS]
    BatchSource(batch(users, said, swept="snapshot")).sync_into(mirror.folder)


@pytest.mark.parametrize("part", [None, 0, 0.5])
def test_a_damaged_or_missing_file_is_written_anew_by_the_next_sync(mirror, part):
    seeded(mirror)
    [file] = (current(mirror) / "messages").iterdir()
    content = file.read_bytes()
    if part is None:
        file.unlink()
    else:
        file.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(MirrorError, match="sync again"):
        rows(Mirror(mirror.folder), "SELECT count(*), max(body) FROM messages")
    seeded(mirror)
    assert rows(mirror, "SELECT count(*) FROM messages") == COUNT


@posix_only
def test_link_that_names_anything_but_a_snapshot_is_refused(mirror, tmp_path):
    seeded(mirror)
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
    seeded(mirror)
    assert rows(mirror, "SELECT count(*) FROM messages") == COUNT


@posix_only
def test_link_in_a_snapshot_is_not_followed(mirror, tmp_path):
    seeded(mirror)
    snapshot = current(mirror)
    [file] = (snapshot / "users").iterdir()
    moved = file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(moved)
    (snapshot / "messages" / "messages-0009.00000001.parquet").symlink_to(moved)
    with pytest.raises(MirrorError, match="not a regular file"):
        rows(Mirror(mirror.folder), "FROM users")
    seeded(mirror)
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
    seeded(mirror)
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


def test_what_is_damaged_past_the_first_rows_is_named_whichever_frame_reads_it(tmp_path):
    """Arrow's consumers raise errors of their own, with the text of the stream's."""
    for package in ("pandas", "polars"):
        pytest.importorskip(package)
    mirror = Mirror(tmp_path / "chats")
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
        assert str(tmp_path) in str(raised.value)
