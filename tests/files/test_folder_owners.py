"""Folders of other users and of groups: what root makes in them, and what is refused."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backread import Mirror, MirrorError
from helpers.file_modes import ANN, BOB, STRANGER, TEAM, files_below, mode, root_only, run_as, umask
from helpers.mirrors import sync

pytestmark = root_only


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
    assert succeeded(run_as(code, server, (ANN,))) == [ANN]


def succeeded(done: subprocess.CompletedProcess[str]) -> list[int]:
    """The users for whom `run_as` ran its code to the end."""
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.splitlines()]


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


def test_a_group_that_cannot_be_given_does_not_open_the_file_to_another(server, shared_folder):
    """A folder whose group its owner is not in, and no setgid bit: files keep the owner's group."""
    folder = shared_folder / "odd"
    own(folder, ANN, TEAM, 0o750)
    assert succeeded(run_as(f"everything(Path({str(folder)!r}))", server, (ANN,))) == [ANN]
    assert mode(folder / "users.csv") == 0o600
    assert (folder / "users.csv").stat().st_gid == ANN


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


def test_a_hard_link_of_another_file_keeps_its_mode(server, shared_folder):
    """The owner of the folder cannot make root open a file of root's to them."""
    folder = shared_folder / "chats"
    own(folder, ANN, ANN, 0o755)
    secret = shared_folder / "secret"
    secret.write_bytes(b"x")
    secret.chmod(0o600)
    before = secret.stat()
    for name in ("mirror.duckdb.wal", "sync.lock"):
        os.link(secret, folder / name)
    with pytest.raises(MirrorError, match=r"hard link, and the folder belongs to another user"):
        sync(Mirror(folder), server)
    assert secret.read_bytes() == b"x"
    assert (secret.stat().st_mode, secret.stat().st_uid) == (before.st_mode, before.st_uid)
