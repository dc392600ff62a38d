"""`Mirror.forget` that is killed with -9: the user is there or removed, and the rest follows."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backread import landing
from backread.mirror import Mirror
from backread.testing import MockServer, World
from helpers import CHILDREN
from helpers.command_line import posix_only
from helpers.file_traces import traces
from helpers.mirrors import rows, sync
from helpers.shards import land

pytestmark = posix_only

CHILD = CHILDREN / "forget_killed.py"
MARKS = ["name-Zoë-c40", "body-Zoë-c40"]


@dataclass
class Planted:
    """A folder with a mirror and a landing that have texts of a user, and what others have."""

    folder: Path
    server: MockServer
    user_id: int
    others: list[Any]
    landed: list[Any]


def others(folder: Path) -> list[Any]:
    query = "SELECT * FROM {} WHERE coalesce({}, '') NOT LIKE '%Zoë%' ORDER BY ALL"
    tables = (("users", "name"), ("messages", "body"))
    return [rows(Mirror(folder / "chats"), query.format(*each)) for each in tables]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    folder = tmp_path_factory.mktemp("planted")
    world = World(seed=4, users=20, messages_per_user=(1, 12))
    user_id = world.user_ids()[8]
    world.edit_user(user_id, name=MARKS[0])
    for message_id in world.message_ids(user_id):
        world.edit_message(user_id, message_id, body=MARKS[1])
    with MockServer(world) as server:
        mirror = Mirror(folder / "chats")
        sync(mirror, server)
        world.edit_user(world.user_ids()[0], name="Changed")
        # The earlier snapshot is retired, and still there.
        sync(mirror, server)
        land(folder / "landed", server)
        yield Planted(folder, server, user_id, others(folder), landed_by_others(folder, user_id))


def landed_by_others(folder: Path, user_id: int) -> list[Any]:
    [run] = landing.runs(folder / "landed")
    found = landing.dataset(folder / "landed", run).to_table().to_pylist()
    return [row for row in found if row["user_id"] != user_id]


def check(planted: Planted, folder: Path, syncs: bool) -> None:
    """Whatever the kill left: readers see all of the user or nothing; the next call ends it."""
    mirror = Mirror(folder / "chats")
    messages = len(planted.server.world.message_ids(planted.user_id))
    assert others(folder) == planted.others
    counts = (
        "SELECT (SELECT count(*) FROM users WHERE id = {0}), "
        "(SELECT count(*) FROM messages WHERE user_id = {0}), (SELECT count(*) FROM forgotten)"
    )
    assert rows(mirror, counts.format(planted.user_id)) in ([(1, messages, 0)], [(0, 0, 1)])
    if syncs:
        sync(mirror, planted.server)
        if rows(mirror, "SELECT count(*) FROM forgotten") == [(1,)]:
            assert traces(folder / "chats", *MARKS) == []
    mirror.forget(planted.user_id, landings=[folder / "landed"])
    assert traces(folder, *MARKS) == []
    assert [*folder.rglob(".*")] == []
    assert [row[:10] for row in others(folder)[0]] == [row[:10] for row in planted.others[0]]
    assert landed_by_others(folder, planted.user_id) == planted.landed
    [run] = landing.runs(folder / "landed")
    assert run.rows == len(planted.landed)


Forget = Callable[[Path, int], Any]


@pytest.fixture(scope="module")
def forget_in_child(planted: Planted) -> Iterator[Forget]:
    """Forgets in a process that is killed at the call of a number; see forget_killed.py."""
    with subprocess.Popen(
        [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, answers = process.stdin, process.stdout

        def forget(folder: Path, number: int) -> Any:
            arguments = [folder / "chats", planted.user_id, folder / "landed", number]
            asks.write(json.dumps(arguments, default=str) + "\n")
            asks.flush()
            return json.loads(answers.readline())

        yield forget
        asks.close()


def copied(planted: Planted, folder: Path) -> Path:
    # As a backup would: the link `current` stays one.
    shutil.copytree(planted.folder, folder, symlinks=True)
    return folder


@pytest.fixture(scope="module")
def calls(
    planted: Planted, forget_in_child: Forget, tmp_path_factory: pytest.TempPathFactory
) -> list[int]:
    """The calls of a forgetting to kill it at."""
    numbers: list[int] = forget_in_child(copied(planted, tmp_path_factory.mktemp("whole") / "a"), 0)
    return numbers


IN_SIX_PARTS = [pytest.param(slice(n, None, 6), marks=pytest.mark.long) for n in range(6)]


# None of the long parts comes near the time limit of a test on a slow machine.
@pytest.mark.parametrize("part", [slice(5, None, 15), *IN_SIX_PARTS])
def test_forget_killed_at_file_system_calls(planted, forget_in_child, calls, tmp_path, part):
    for number in calls[part]:
        folder = copied(planted, tmp_path / str(number))
        assert forget_in_child(folder, number) == -signal.SIGKILL
        check(planted, folder, syncs=number % 2 == 0)
