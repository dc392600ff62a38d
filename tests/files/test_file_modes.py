"""Who may read and write the files that are made: of mirrors, landings and outputs."""

import os
from pathlib import Path

import duckdb
import pytest

from backread import LandingError, Mirror, MirrorError
from backread.testing import MockServer
from helpers.file_modes import mode, modes_below, posix_only, umask
from helpers.mirrors import sync
from helpers.shards import land

pytestmark = posix_only


def make_mirror(folder: Path, server: MockServer) -> None:
    sync(Mirror(folder), server)


FOLDERS = {"mirror": make_mirror, "landing": land}
each_folder = pytest.mark.parametrize("make", FOLDERS.values(), ids=FOLDERS)


# --- modes ----------------------------------------------------------------------------------------


def replace_definition(mirror: Mirror) -> None:
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        connection.execute("UPDATE meta SET value = 'other' WHERE key = 'views_database'")


@each_folder
@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_folder_that_we_make_is_for_its_user_alone(make, server, tmp_path, mask):
    folder = tmp_path / "above" / "folder"
    with umask(mask):
        make(folder, server)
    assert mode(folder.parent) == 0o700
    for name, found in modes_below(folder).items():
        assert found == (0o700 if (folder / name).is_dir() else 0o600), name


class Seen(dict[str, set[int]]):
    """The modes below a mirror's folder, each time that a sync tells its progress."""

    def __init__(self, mirror: Mirror) -> None:
        super().__init__()
        self.mirror = mirror

    def __call__(self, _: object) -> None:
        for name, found in modes_below(self.mirror.folder).items():
            self.setdefault(name, set()).add(found)


def test_so_is_what_duckdb_writes_while_a_sync_runs(server, tmp_path):
    """Its log, and where it puts what exceeds its memory."""
    mirror = Mirror(tmp_path / "chats")
    seen = Seen(mirror)

    with umask(0o000):
        for _ in range(2):
            sync(mirror, server, on_progress=seen, mode="full")
    assert {"mirror.duckdb.wal", "mirror.duckdb.tmp", "mirror.duckdb"} <= seen.keys()
    assert set.union(*seen.values()) == {0o700, 0o600}


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


def test_a_replaced_file_keeps_its_mode(backread, server, tmp_path):
    output = tmp_path / "users.json"
    output.touch()
    output.chmod(0o444)
    assert backread("users", "--output", output).code == 0
    assert output.stat().st_size
    assert mode(output) == 0o444

    mirror = Mirror(tmp_path / "chats")
    sync(mirror, server)
    views = mirror.folder / "chats.duckdb"
    views.chmod(0o640)
    # What a program of another version left there is no database of today's views.
    replace_definition(mirror)
    before = views.stat().st_ino
    sync(mirror, server, mode="full")
    assert (mode(views), views.stat().st_ino != before) == (0o640, True)


# --- refusals -------------------------------------------------------------------------------------


@each_folder
@pytest.mark.parametrize("given", [0o1777, 0o702])
def test_a_folder_that_everyone_may_write_to_is_refused(make, server, tmp_path, given):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(given)
    before = sum(server.counts().values())
    with pytest.raises(
        (MirrorError, LandingError, OSError),
        match=r"every user .* may write .*new folder in it \(mkdir -m 700\), or .*chmod o-w",
    ) as caught:
        make(folder, server)
    assert len(str(caught.value).splitlines()) == 1
    assert list(folder.iterdir()) == []
    if make is not land:  # which was given a plan, and that is what was read
        assert sum(server.counts().values()) == before
    # As the error says, a new folder in it will do.
    make(folder / "new", server)
    assert mode(folder / "new") == 0o700


def test_mirror_export_to_a_private_folder_where_everyone_may_write(backread, server, tmp_path):
    """As in an emptyDir of Kubernetes."""
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o777)
    mirror = Mirror(data / "chats")
    sync(mirror, server)
    mirror.export(data / "out", format="parquet")
    assert mode(data / "out") == 0o700
    assert {mode(file) for file in (data / "out").iterdir()} == {0o600}
    said = "use a new folder in it (mkdir -m 700)"
    (data / "mine").mkdir(0o700)
    for command, file in (
        (("export", mirror.folder), "out.sqlite"),
        (("report", mirror.folder, "--output"), "report.html"),
    ):
        assert said in backread(*command, data / file).line
        assert backread(*command, data / "mine" / file).code == 0


def test_an_output_where_everyone_may_replace_it_is_refused(backread, server, tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    before = sum(server.counts().values())
    done = backread("users", "--output", folder / "out.json")
    assert done.code == 2
    assert "every user of this machine may write to" in done.line
    assert sum(server.counts().values()) == before
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["sync.lock", "mirror.duckdb", "published"])
def test_a_link_in_the_place_of_a_file_of_the_mirror_is_refused(server, tmp_path, name):
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


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "device", "folder"])
def test_an_output_that_is_no_plain_file_is_refused(backread, server, tmp_path, kind):
    output, target = tmp_path / "users.json", tmp_path / "target"
    if kind == "link":
        target.write_text("before")
    if kind in ("link", "dangling link"):
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
