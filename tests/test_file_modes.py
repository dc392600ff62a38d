"""Who may read and write the files that are made: of mirrors, landings, records and outputs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")
pytest.importorskip("rich")

from backread import Client, LandingError, Mirror, MirrorError, landing, plan
from backread.testing import MockServer, Record, record
from command_line import Done
from mirrors import rows, sync
from modes import (
    ANN,
    BOB,
    STRANGER,
    TEAM,
    files_below,
    mode,
    modes_below,
    posix_only,
    root_only,
    run_as,
    umask,
)

pytestmark = posix_only

Backread = Callable[..., Done]


def land(folder: Path, server: MockServer) -> landing.Committed:
    with Client(server.url, server.secret, server.vendor) as client:
        planned = plan(client, shards=2)
        landing.begin(folder, planned)
        landed = [landing.land(folder, shard, client=client) for shard in planned]
        return landing.commit(folder, planned.plan_id, landed)


def make_record(folder: Path, server: MockServer, **options: Any) -> Record:
    with Client(server.url, server.secret, server.vendor) as client:
        return record(client, folder, users=3, **options)


def make_mirror(folder: Path, server: MockServer) -> None:
    sync(Mirror(folder), server)


FOLDERS = {"mirror": make_mirror, "landing": land, "record": make_record}
each_folder = pytest.mark.parametrize("make", FOLDERS.values(), ids=FOLDERS)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that other users can reach; pytest's own are for the user who runs it."""
    folder = Path(tempfile.mkdtemp(prefix="backread-modes-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


# --- modes ----------------------------------------------------------------------------------------


@each_folder
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_folder_that_we_make_is_for_its_user_alone(
    make: Callable[..., object], server: MockServer, tmp_path: Path, mask: int
) -> None:
    folder = tmp_path / "above" / "folder"
    with umask(mask):
        make(folder, server)
    assert mode(folder.parent) == 0o700
    for name, found in modes_below(folder).items():
        assert found == (0o700 if (folder / name).is_dir() else 0o600), name


def test_so_is_what_duckdb_writes_while_a_sync_runs(server: MockServer, tmp_path: Path) -> None:
    """Its log, and where it puts what exceeds its memory."""
    mirror = Mirror(tmp_path / "chats")
    seen: dict[str, set[int]] = {}

    def look(_: object) -> None:
        for name, found in modes_below(mirror.folder).items():
            seen.setdefault(name, set()).add(found)

    with umask(0o000):
        for _ in range(2):
            sync(mirror, server, on_progress=look, mode="full")
    assert {"mirror.duckdb.wal", "mirror.duckdb.tmp", "mirror.duckdb"} <= seen.keys()
    assert set.union(*seen.values()) == {0o700, 0o600}


@each_folder
@pytest.mark.parametrize(("given", "files"), [(0o2770, 0o660), (0o750, 0o640), (0o711, 0o600)])
def test_in_a_folder_that_was_there_files_take_its_mode(
    make: Callable[..., object], server: MockServer, tmp_path: Path, given: int, files: int
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(given)
    with umask(0o022):
        make(folder, server)
    for name, found in modes_below(folder).items():
        assert found == (given if (folder / name).is_dir() else files), name


def test_the_log_of_a_sync_takes_the_mode_of_the_folder(server: MockServer, tmp_path: Path) -> None:
    """Someone else of the group must be able to go on where a killed sync was."""
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats").chmod(0o2775)
    mirror = Mirror(tmp_path / "chats")
    seen: dict[str, set[int]] = {}

    def look(_: object) -> None:
        for name, found in modes_below(mirror.folder).items():
            seen.setdefault(name, set()).add(found)

    sync(mirror, server, on_progress=look)
    assert seen["mirror.duckdb.wal"] == {0o664}
    # What does not fit into memory is for nobody but those who may write.
    assert seen["mirror.duckdb.tmp"] == {0o2770}


def test_an_output_takes_the_mode_of_its_folder(backread: Backread, tmp_path: Path) -> None:
    for given, expected in ((0o700, 0o600), (0o755, 0o644), (0o2770, 0o660), (0o1777, 0o600)):
        folder = tmp_path / f"{given:o}"
        folder.mkdir()
        folder.chmod(given)
        outputs = [folder / name for name in ("a.json", "b.csv", "c.parquet", "d.json")]
        for file, shape in zip(outputs[:3], ("json", "csv", "parquet"), strict=True):
            assert backread("users", "--format", shape, "--output", file).code == 0
        assert backread("probe", "--save", outputs[3], "--max-requests", 3).code == 0
        assert [mode(file) for file in outputs] == [expected] * 4
        assert sorted(folder.iterdir()) == outputs


def test_a_replaced_file_keeps_its_mode(
    backread: Backread, server: MockServer, tmp_path: Path
) -> None:
    output = tmp_path / "users.json"
    output.touch()
    output.chmod(0o444)
    assert backread("users", "--output", output).code == 0
    assert output.stat().st_size
    assert mode(output) == 0o444

    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    manifest = mirror.folder / "published" / "manifest.json"
    manifest.chmod(0o640)
    sync(mirror, server, mode="full")
    assert mode(manifest) == 0o640

    made = make_record(tmp_path / "record", server)
    (made.folder / "world.jsonl").chmod(0o644)
    made.folder.chmod(0o755)
    make_record(made.folder, server, replace=True)
    assert mode(made.folder) == 0o755
    assert mode(made.folder / "world.jsonl") == 0o644


def test_a_query_too_large_for_memory_writes_for_its_user_alone(
    server: MockServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    [(place,)] = rows(mirror, "SELECT current_setting('temp_directory')")
    assert Path(place).is_absolute()
    assert mode(Path(place)) == 0o700
    assert [each.name for each in tmp_path.iterdir()] == ["chats"]


# --- refusals -------------------------------------------------------------------------------------


@each_folder
@pytest.mark.parametrize("given", [0o777, 0o1777, 0o702])
def test_a_folder_that_everyone_may_write_to_is_refused(
    make: Callable[..., object], server: MockServer, tmp_path: Path, given: int
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(given)
    before = sum(server.counts().values())
    with pytest.raises(
        (MirrorError, LandingError, OSError),
        match=r"every user .* may write .*chmod o-w.*new folder",
    ) as caught:
        make(folder, server)
    assert len(str(caught.value).splitlines()) == 1
    assert list(folder.iterdir()) == []
    if make is not land:  # which was given a plan, and that is what was read
        assert sum(server.counts().values()) == before
    # As the error says, a new folder in it will do.
    make(folder / "new", server)
    assert mode(folder / "new") == 0o700


def test_an_output_where_everyone_may_replace_it_is_refused(
    backread: Backread, server: MockServer, tmp_path: Path
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    before = sum(server.counts().values())
    done = backread("users", "--output", folder / "out.json")
    assert done.code == 2
    assert "every user of this machine may write to" in done.line
    assert sum(server.counts().values()) == before
    done = backread("probe", "--max-requests", 3, "--save", folder / "out.json")
    assert done.code == 2
    assert "every user of this machine may write to" in done.error
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["sync.lock", "mirror.duckdb", "published", "mirror.duckdb.tmp"])
def test_a_link_in_the_place_of_a_file_of_the_mirror_is_refused(
    server: MockServer, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "target"
    folder = tmp_path / "chats"
    folder.mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(MirrorError, match=rf"{name} is a symbolic link.*remove it"):
        sync(Mirror(folder), server)
    assert not target.exists()
    target.mkdir()
    with pytest.raises(MirrorError, match=rf"{name} is a symbolic link.*remove it"):
        sync(Mirror(folder), server)
    assert list(target.iterdir()) == []


def test_a_manifest_that_is_a_link_is_refused(server: MockServer, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    manifest = mirror.folder / "published" / "manifest.json"
    moved = manifest.rename(tmp_path / "elsewhere.json")
    before = moved.read_bytes()
    manifest.symlink_to(moved)
    for use in (lambda: mirror.sql("SELECT 1"), lambda: sync(mirror, server)):
        with pytest.raises(MirrorError, match=r"manifest\.json is a symbolic link"):
            use()
    assert moved.read_bytes() == before

    committed = land(tmp_path / "landing", server)
    manifest = tmp_path / "landing" / "manifests" / f"{committed.number:08}.json"
    manifest.symlink_to(manifest.rename(tmp_path / "landed.json"))
    with pytest.raises(LandingError, match=r"json is a symbolic link"):
        landing.runs(tmp_path / "landing")


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "folder"])
def test_an_output_that_is_no_plain_file_is_refused(
    backread: Backread, server: MockServer, tmp_path: Path, kind: str
) -> None:
    output, target = tmp_path / "users.json", tmp_path / "target"
    if kind == "link":
        target.write_text("before")
        output.symlink_to(target)
    elif kind == "dangling link":
        output.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(output)
    elif kind == "device":
        if os.geteuid() != 0 or not Path("/dev/null").is_char_device():
            pytest.skip("root can write there, and only root")
        output = Path("/dev/null")
    else:
        output.mkdir()
    before, kept = sum(server.counts().values()), output.lstat().st_ino
    done = backread("users", "--output", output)
    assert done.code == 2
    word = {"link": "symbolic link", "dangling link": "symbolic link", "folder": "directory"}
    assert word.get(kind, "not a regular file") in done.line
    assert sum(server.counts().values()) == before
    assert output.lstat().st_ino == kept
    assert not target.exists() or target.read_text() == "before"


def test_a_record_that_is_a_link_is_refused(server: MockServer, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "record").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="is a symbolic link; name the folder itself"):
        make_record(tmp_path / "record", server)
    assert list((tmp_path / "target").iterdir()) == []


# --- manifests that someone edited ----------------------------------------------------------------

NAMES = ["../users.parquet", "/etc/passwd", "a/b.1.parquet", "users.1.parquet\n", "", 7, None]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_manifest_names_only_files_of_its_folder(
    server: MockServer, tmp_path: Path, name: object
) -> None:
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    file = mirror.folder / "published" / "manifest.json"
    manifest = json.loads(file.read_bytes())
    for part in ({"files": {**manifest["files"], "users": [name]}}, {"retired": {str(name): "x"}}):
        file.write_text(json.dumps(manifest | part))
        with pytest.raises(MirrorError, match=r"manifest\.json is damaged"):
            mirror.sql("SELECT * FROM users")


@pytest.mark.parametrize(
    "value", [None, 1, -1.5, "x", [], {}, True, ["x"], {"users": "x"}], ids=repr
)
def test_a_manifest_of_other_types_is_damaged(
    server: MockServer, tmp_path: Path, value: object
) -> None:
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    file = mirror.folder / "published" / "manifest.json"
    manifest = json.loads(file.read_bytes())
    of_another_type = [name for name, held in manifest.items() if type(held) is not type(value)]
    for name in {*of_another_type, "seen_at", "files"} - {"format"}:
        file.write_text(json.dumps(manifest | {name: value}))
        with pytest.raises(MirrorError, match=r"manifest\.json is damaged"):
            mirror.sql("SELECT * FROM users")


@pytest.mark.parametrize("name", ["number", "resource", "rows", "files", "report", "run_id"])
def test_a_manifest_of_a_landing_of_other_types_is_damaged(
    server: MockServer, tmp_path: Path, name: str
) -> None:
    committed = land(tmp_path / "landing", server)
    file = tmp_path / "landing" / "manifests" / f"{committed.number:08}.json"
    manifest = json.loads(file.read_bytes())
    for value in (None, -1, 1.5, "x", ["x"], {"x": 1}):
        file.write_text(json.dumps(manifest | {name: value}))
        with pytest.raises(LandingError, match="is damaged"):
            landing.runs(tmp_path / "landing")


def test_a_manifest_that_is_nested_too_deep_is_damaged(server: MockServer, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    (mirror.folder / "published" / "manifest.json").write_text("[" * 200_000)
    with pytest.raises(MirrorError, match=r"manifest\.json is damaged \(it is nested too deep\)"):
        mirror.sql("SELECT * FROM users")


@pytest.mark.parametrize("name", [*NAMES, "run=x/shard=00000/attempt=../../../x.parquet"], ids=repr)
def test_a_manifest_of_a_landing_names_only_files_of_its_run(
    server: MockServer, tmp_path: Path, name: object
) -> None:
    committed = land(tmp_path / "landing", server)
    file = tmp_path / "landing" / "manifests" / f"{committed.number:08}.json"
    manifest = json.loads(file.read_bytes())
    other = committed.files[0].replace(committed.run_id, "20260101T000000Z-0")
    for files in ([name], [other], [name, *committed.files]):
        file.write_text(json.dumps(manifest | {"files": files}))
        with pytest.raises(LandingError, match=r"is damaged: .* is no file of the run"):
            landing.runs(tmp_path / "landing")


def test_what_was_landed_is_a_file_of_the_run(server: MockServer, tmp_path: Path) -> None:
    """It came by way of a scheduler's database, where others may write."""
    with Client(server.url, server.secret, server.vendor) as client:
        planned = plan(client, shards=1)
        landing.begin(tmp_path, planned)
        [shard] = planned
        landed = json.loads(landing.land(tmp_path, shard, client=client).to_json())
    (tmp_path / "secret").write_bytes(b"x" * landed["size"])
    forged = landing.Landed.from_json(json.dumps(landed | {"file": "secret"}))
    with pytest.raises(LandingError, match="'secret' is no file of it"):
        landing.commit(tmp_path, planned.plan_id, [forged])


# --- other users ----------------------------------------------------------------------------------


@root_only
def test_root_in_another_users_folder(server: MockServer, shared_folder: Path) -> None:
    """Under umask 022, as in a container: the files are its owner's, with its modes."""
    for given, files in ((0o700, 0o600), (0o750, 0o640), (0o755, 0o644)):
        folder = shared_folder / f"{given:o}"
        folder.mkdir()
        os.chown(folder, ANN, TEAM)
        folder.chmod(given)
        (folder / "mirror").mkdir()
        os.chown(folder / "mirror", ANN, TEAM)
        (folder / "mirror").chmod(given)
        with umask(0o022):
            sync(Mirror(folder / "mirror"), server)
        for each in files_below(folder / "mirror"):
            found = each.stat()
            assert (mode(each), found.st_uid, found.st_gid) == (files, ANN, TEAM), each
        # The owner goes on with it.
        done = run_as(
            f"""
            with Client() as client:
                Mirror({str(folder / "mirror")!r}).sync(client, mode="full")
            """,
            server,
            ANN,
            (),
        )
        assert (done.returncode, done.stderr[-2000:]) == (0, "")


@root_only
def test_a_group_shares_a_folder(server: MockServer, shared_folder: Path) -> None:
    """Each of its members syncs what the other made, under umask 022; others read nothing."""
    folder = shared_folder / "team"
    folder.mkdir()
    os.chown(folder, 0, TEAM)
    folder.chmod(0o2770)
    code = f"""
    folder = Path({str(folder)!r})
    with Client() as client:
        Mirror(folder / "mirror").sync(client, mode="full")
    assert run(["users", "--output", str(folder / "users.json")]) == 0
    """
    (folder / "mirror").mkdir()
    os.chown(folder / "mirror", ANN, TEAM)
    (folder / "mirror").chmod(0o2770)
    for user in (ANN, BOB, ANN):
        done = run_as(code, server, user, (TEAM,))
        assert (done.returncode, done.stderr[-2000:]) == (0, "")
        for each in files_below(folder):
            assert (mode(each), each.stat().st_gid) == (0o660, TEAM), each
    done = run_as(code, server, STRANGER, ())
    assert done.returncode != 0
    assert "Permission denied" in done.stderr


@root_only
@pytest.mark.parametrize("given", [0o755, 0o2775])
def test_a_folder_of_someone_else_is_refused(
    server: MockServer, shared_folder: Path, given: int
) -> None:
    folder = shared_folder / "anns"
    folder.mkdir()
    os.chown(folder, ANN, TEAM)
    folder.chmod(given)
    done = run_as(
        f"""
        folder = Path({str(folder)!r})
        for make in (
            lambda: Mirror(folder).sync(client),
            lambda: record(client, folder, users=1),
            lambda: landing.begin(folder, planned),
        ):
            with Client() as client:
                planned = plan(client, shards=1)
                try:
                    make()
                except Exception as error:
                    print(error)
                else:
                    sys.exit("it was not refused")
        """,
        server,
        BOB,
        (),
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = [line for line in done.stdout.splitlines() if "another user" in line]
    assert len(said) == 3, done.stdout
    assert all(f"(uid {ANN})" in line for line in said)
    assert list(folder.iterdir()) == []


@root_only
def test_a_group_that_cannot_be_given_does_not_open_the_file_to_another(
    server: MockServer, shared_folder: Path
) -> None:
    """A folder whose group its owner is not in, and no setgid bit: files keep the owner's group."""
    folder = shared_folder / "odd"
    folder.mkdir()
    os.chown(folder, ANN, TEAM)
    folder.chmod(0o750)
    done = run_as(f"everything(Path({str(folder)!r}))", server, ANN, ())
    assert (done.returncode, done.stderr[-2000:]) == (0, "")
    assert mode(folder / "users.csv") == 0o600
    assert (folder / "users.csv").stat().st_gid == ANN


@root_only
def test_root_does_not_write_into_a_file_that_someone_else_put_into_tmp(
    backread: Backread, server: MockServer, shared_folder: Path
) -> None:
    """It would keep its owner and mode, and so be read."""
    shared_folder.chmod(0o1777)
    planted = shared_folder / "users.json"
    planted.touch()
    os.chown(planted, STRANGER, STRANGER)
    planted.chmod(0o666)
    done = backread("users", "--output", planted)
    assert done.code == 2
    assert "belongs to another user, in a folder to which everyone may write" in done.line
    assert planted.stat().st_size == 0


@root_only
def test_a_hard_link_of_another_file_keeps_its_mode(
    server: MockServer, shared_folder: Path
) -> None:
    """Whoever owns the folder cannot have root open a file of root's to them."""
    folder = shared_folder / "chats"
    folder.mkdir()
    os.chown(folder, ANN, ANN)
    secret = shared_folder / "secret"
    secret.write_bytes(b"x")
    secret.chmod(0o600)
    for name in ("mirror.duckdb.wal", "sync.lock"):
        os.link(secret, folder / name)
    with pytest.raises(MirrorError, match=r"hard link, and the folder belongs to another user"):
        sync(Mirror(folder), server)
    assert secret.read_bytes() == b"x"
    assert (mode(secret), secret.stat().st_uid, stat.S_ISREG(secret.stat().st_mode)) == (
        0o600,
        0,
        True,
    )
