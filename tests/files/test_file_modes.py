"""Who may read and write the files that are made: of mirrors, landings and outputs.

Also in folders of other users and of groups: what root makes in them, and what is refused.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from backread import LandingError, Mirror, MirrorError
from helpers.file_modes import (
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
from helpers.mirrors import sync
from helpers.shards import land

pytestmark = posix_only


each_folder = pytest.mark.parametrize(
    "make",
    [lambda folder, server: sync(Mirror(folder), server), land],
    ids=["mirror", "landing"],
)


@each_folder
@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_folder_that_we_make_is_for_its_user_alone(make, server, tmp_path, mask):
    folder = tmp_path / "above" / "folder"
    with umask(mask):
        make(folder, server)
    for name, found in modes_below(folder.parent).items():
        assert found == (0o700 if (folder.parent / name).is_dir() else 0o600), name


def test_so_is_what_duckdb_writes_while_a_sync_runs(server, mirror):
    """Its log, and where it puts what exceeds its memory."""
    seen: set[tuple[str, int]] = set()

    def look(_: object) -> None:
        seen.update(modes_below(mirror.folder).items())

    with umask(0o000):
        for _ in range(2):
            sync(mirror, server, on_progress=look, mode="full")
    assert {"mirror.duckdb.wal", "mirror.duckdb.tmp", "mirror.duckdb"} <= {name for name, _ in seen}
    assert {found for _, found in seen} == {0o700, 0o600}


@each_folder
@pytest.mark.parametrize(("given", "files"), [(0o2770, 0o660), (0o711, 0o600)])
def test_in_a_folder_that_was_there_files_take_its_mode(make, server, tmp_path, given, files):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(given)
    with umask(0o022):
        make(folder, server)
    for name, found in modes_below(folder).items():
        assert found == (given if (folder / name).is_dir() else files), name


def test_an_output_takes_the_mode_of_its_folder(backread, tmp_path):
    for given, expected in ((0o755, 0o644), (0o2770, 0o660), (0o1777, 0o600)):
        folder = tmp_path / f"{given:o}"
        folder.mkdir()
        folder.chmod(given)
        outputs = [folder / name for name in ("a.json", "b.csv", "c.parquet", "d.json")]
        for file, shape in zip(outputs[:3], ("json", "csv", "parquet"), strict=True):
            assert backread("users", "--format", shape, "--output", file).code == 0
        assert backread("probe", "--save", outputs[3], "--max-requests", 3).code == 0
        assert [mode(file) for file in outputs] == [expected] * 4
        assert sorted(folder.iterdir()) == outputs


def test_a_replaced_file_keeps_its_mode(backread, server, mirror, tmp_path):
    output = tmp_path / "users.json"
    output.touch()
    output.chmod(0o444)
    assert backread("users", "--output", output).code == 0
    assert (output.stat().st_size > 0, mode(output)) == (True, 0o444)

    sync(mirror, server)
    views = mirror.folder / "chats.duckdb"
    views.chmod(0o640)
    # What a program of another version left there is no database of today's views.
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        connection.execute("UPDATE meta SET value = 'other' WHERE key = 'views_database'")
    before = views.stat().st_ino
    sync(mirror, server, mode="full")
    assert (mode(views), views.stat().st_ino != before) == (0o640, True)


@each_folder
@pytest.mark.parametrize("given", [0o1777, 0o702])
def test_a_folder_that_everyone_may_write_to_is_refused(make, server, tmp_path, given):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(given)
    before = sum(server.counts().values())
    said = r"every user .* may write .*new folder in it \(mkdir -m 700\), or .*chmod o-w"
    with pytest.raises((MirrorError, LandingError, OSError), match=said):
        make(folder, server)
    assert list(folder.iterdir()) == []
    if make is not land:  # which was given a plan, and that is what was read
        assert sum(server.counts().values()) == before
    # As the error says, a new folder in it will do.
    make(folder / "new", server)
    assert mode(folder / "new") == 0o700


def test_an_output_where_everyone_may_write_is_refused_and_a_folder_in_it_used(
    backread, server, tmp_path
):
    """As in an emptyDir of Kubernetes."""
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o777)
    mirror = Mirror(data / "chats")
    sync(mirror, server)
    mirror.export(data / "out", format="parquet")
    modes = modes_below(data / "out")
    assert (modes.pop("."), {*modes.values()}) == (0o700, {0o600})
    before = sum(server.counts().values())
    (data / "mine").mkdir(0o700)
    for command, file in (
        (("users", "--output"), "out.json"),
        (("export", mirror.folder), "out.sqlite"),
        (("report", mirror.folder, "--output"), "report.html"),
    ):
        refused = backread(*command, data / file)
        assert (refused.code, sum(server.counts().values())) == (2, before)
        assert "use a new folder in it (mkdir -m 700)" in refused.line
        assert not (data / file).exists()
    assert backread("export", mirror.folder, data / "mine" / "out.sqlite").code == 0


@pytest.mark.parametrize("name", ["sync.lock", "mirror.duckdb", "published"])
def test_a_link_in_the_place_of_a_file_of_the_mirror_is_refused(server, mirror, tmp_path, name):
    target = tmp_path / "target"
    mirror.folder.mkdir()
    (mirror.folder / name).symlink_to(target)
    with pytest.raises(MirrorError, match=rf"{name} is a symbolic link.*remove it"):
        sync(mirror, server)
    assert not target.exists()
    target.mkdir()
    with pytest.raises(MirrorError, match=rf"{name} is a symbolic link.*remove it"):
        sync(mirror, server)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.symlink_to(path.with_name("target")), "symbolic link"),
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "directory"),
    ],
)
def test_an_output_that_is_no_plain_file_is_refused(backread, server, tmp_path, make, said):
    output, target = tmp_path / "users.json", tmp_path / "target"
    make(output)
    before, kept = sum(server.counts().values()), output.lstat().st_ino
    for text in (None, "before"):
        if text:
            target.write_text(text)
        done = backread("users", "--output", output)
        assert (done.code, said in done.line) == (2, True)
        assert (sum(server.counts().values()), output.lstat().st_ino) == (before, kept)
        assert (target.read_text() if target.exists() else None) == text


# --- folders of other users and of groups ---------------------------------------------------------


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder that other users can reach; pytest's own are for the user who runs it."""
    folder = Path(tempfile.mkdtemp(prefix="backread-modes-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def own(folder: Path, user: int, group: int, given: int) -> None:
    """Makes a folder with this owner and mode."""
    folder.mkdir()
    os.chown(folder, user, group)
    folder.chmod(given)


@root_only
def test_root_in_another_users_folder(server, shared_folder):
    """Under umask 022, as in a container: the files are its owner's, with its modes."""
    for given, files in ((0o700, 0o600), (0o750, 0o640), (0o755, 0o644)):
        folder = shared_folder / f"{given:o}"
        own(folder, ANN, TEAM, given)
        own(folder / "mirror", ANN, TEAM, given)
        with umask(0o022):
            sync(Mirror(folder / "mirror"), server)
        for each in files_below(folder / "mirror"):
            found = each.stat()
            assert (mode(each), found.st_uid, found.st_gid) == (files, ANN, TEAM), each
    # The owner goes on with them.
    code = f"""
    with Client() as client:
        for folder in Path({str(shared_folder)!r}).iterdir():
            Mirror(folder / "mirror").sync(client, mode="full")
    """
    done = run_as(code, server, (ANN,))
    assert (done.returncode, done.stdout) == (0, f"{ANN}\n"), done.stderr


@root_only
def test_a_group_shares_a_folder(server, shared_folder):
    """Each of its members syncs what the other made, under umask 022; others read nothing."""
    folder = shared_folder / "team"
    own(folder, 0, TEAM, 0o2770)
    own(folder / "mirror", ANN, TEAM, 0o2770)
    code = f"""
    folder = Path({str(folder)!r})
    with Client() as client:
        Mirror(folder / "mirror").sync(client, mode="full")
    assert run(["users", "--output", str(folder / "users.json")]) == 0
    """
    users = [(ANN, TEAM), (BOB, TEAM), (ANN, TEAM), (STRANGER,)]
    done = run_as(code, server, *users)
    assert (done.returncode, done.stdout) == (1, f"{ANN}\n{BOB}\n{ANN}\n")
    assert "Permission denied" in done.stderr
    for each in files_below(folder):
        assert (mode(each), each.stat().st_gid) == (0o660, TEAM), each


@root_only
def test_a_group_that_cannot_be_given_does_not_open_the_file_to_another(server, shared_folder):
    """A folder whose group its owner is not in, and no setgid bit: files keep the owner's group."""
    folder = shared_folder / "odd"
    own(folder, ANN, TEAM, 0o750)
    done = run_as(f"everything(Path({str(folder)!r}))", server, (ANN,))
    assert (done.returncode, done.stdout) == (0, f"{ANN}\n"), done.stderr
    assert mode(folder / "users.csv") == 0o600
    assert (folder / "users.csv").stat().st_gid == ANN


@root_only
def test_root_does_not_write_into_a_file_that_someone_else_put_into_tmp(
    backread, server, shared_folder
):
    """It would keep its owner and mode, and so be read."""
    shared_folder.chmod(0o1777)
    planted = shared_folder / "users.json"
    planted.touch()
    os.chown(planted, STRANGER, STRANGER)
    planted.chmod(0o666)
    done = backread("users", "--output", planted)
    assert done.code == 2
    assert "belongs to another user, and every user may write to its folder" in done.line
    assert planted.stat().st_size == 0


@root_only
def test_a_hard_link_of_another_file_keeps_its_mode(server, shared_folder):
    """The owner of the folder cannot make root open a file of root's to them."""
    folder = shared_folder / "chats"
    own(folder, ANN, ANN, 0o755)
    secret = shared_folder / "secret"
    secret.write_bytes(b"x")
    secret.chmod(0o600)
    for name in ("mirror.duckdb.wal", "sync.lock"):
        os.link(secret, folder / name)
    with pytest.raises(MirrorError, match=r"hard link, and the folder belongs to another user"):
        sync(Mirror(folder), server)
    assert secret.read_bytes() == b"x"
    assert (mode(secret), secret.stat().st_uid) == (0o600, os.getuid())
