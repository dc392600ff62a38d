"""Modes of files, a limit on their size, and code that runs as another user."""

import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from helpers.python_process import SECONDS, environment

posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
root_only = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can become other users"
)

ANN, BOB, STRANGER = 54_301, 54_302, 54_303
TEAM = 54_400
"""Ids of users and of a group that need no names."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def modes_below(folder: Path) -> dict[str, int]:
    """The mode of the folder (``.``) and of all that is in it but links, which have none."""
    found = {}
    for each in (folder, *folder.rglob("*")):
        if each.is_symlink():
            continue
        try:
            found[str(each.relative_to(folder))] = mode(each)
        except FileNotFoundError:
            # Another thread removed it in the meantime.
            continue
    return found


def files_below(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """In the block no file can grow beyond this size, as on a disk that is full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


WARM = """
import contextlib, io, os, sys, tempfile
from pathlib import Path
from backread import Client, Mirror, MirrorError, landing, plan
from backread._files import unfinished as _unfinished
from backread.cli.app import run

def everything(folder):
    with Client() as client:
        Mirror(folder / "mirror").sync(client)
        planned = plan(client, shards=1)
        landing.begin(folder / "landing", planned)
        landed = [landing.land(folder / "landing", shard, client=client) for shard in planned]
        landing.commit(folder / "landing", planned.plan_id, landed)
    for name, *arguments in (
        ("users.csv", "users", "--format", "csv", "--output"),
        ("users.parquet", "users", "--format", "parquet", "--output"),
        ("profile.json", "probe", "--max-requests", "3", "--save"),
    ):
        said = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run([*arguments, str(folder / name)])
        assert code == 0, said.buffer.getvalue()
    Mirror(folder / "mirror").sql("SELECT count(*) FROM messages").fetchall()

# What other users may not be able to import is imported by root.
with tempfile.TemporaryDirectory() as warm:
    everything(Path(warm))
# That of root.
_unfinished._scratch.clear()
"""


def run_as(code: str, server: Any, *users: tuple[int, ...]) -> subprocess.CompletedProcess[str]:
    """Runs code as each user in turn, up to the first for whom it fails; prints the others.

    A user is an id, which is that of a group too, and further groups. ``everything(folder)`` puts
    all kinds of files of ours into the folder.
    """
    become = f"""
for user, *groups in {list(users)}:
    if os.fork() == 0:
        try:
            os.setgroups(groups)
            os.setgid(user)
            os.setuid(user)
            os.umask(0o022)
            os.chdir("/")
            exec({textwrap.dedent(code)!r})
        except BaseException as error:
            sys.stderr.write(repr(error))
            os._exit(1)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(1)
    print(user)
"""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WARM + become],
        env=environment(server),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
