"""`Mirror.forget` that is killed with -9: the user is there or removed, and the rest follows."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

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
SECONDS = 120
Kill = Callable[[Path], None]
AtCall = Callable[[int], Kill]
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
    mirror = Mirror(folder / "chats")
    return [
        rows(
            mirror,
            f"SELECT * FROM {table} WHERE coalesce({column}, '') NOT LIKE '%Zoë%' ORDER BY ALL",
        )
        for table, column in (("users", "name"), ("messages", "body"))
    ]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    folder = tmp_path_factory.mktemp("planted")
    world = World(seed=4, users=50, messages_per_user=(1, 30))
    user_id = world.user_ids()[20]
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


def forget(folder: Path, user_id: int) -> subprocess.Popen[str]:
    command = [sys.executable, CHILD, folder / "chats", user_id, folder / "landed"]
    return subprocess.Popen([str(each) for each in command], stdout=subprocess.PIPE, text=True)


def check(planted: Planted, folder: Path, chance: random.Random) -> None:
    """Whatever the kill left: readers see all of the user or nothing; the next call ends it."""
    mirror = Mirror(folder / "chats")
    messages = len(planted.server.world.message_ids(planted.user_id))
    assert others(folder) == planted.others
    seen = [
        rows(mirror, f"SELECT count(*) FROM {table} WHERE {column} = {planted.user_id}")[0][0]
        for table, column in (("users", "id"), ("messages", "user_id"))
    ]
    assert seen in ([1, messages], [0, 0])
    removed = rows(mirror, "SELECT count(*) FROM forgotten") == [(1,)]
    assert removed == (seen == [0, 0])
    if chance.random() < 0.5:
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


def kill_each(planted: Planted, tmp_path: Path, kills: list[Kill]) -> None:
    chance = random.Random(1)
    for number, kill in enumerate(kills):
        folder = tmp_path / str(number)
        # As a backup would: the link `current` stays one.
        shutil.copytree(planted.folder, folder, symlinks=True)
        kill(folder)
        check(planted, folder, chance)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def at_call(planted: Planted) -> Iterator[AtCall]:
    with subprocess.Popen(
        [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, answers = process.stdin, process.stdout

        def at_call(number: int) -> Kill:
            def kill(folder: Path) -> None:
                arguments = [folder / "chats", planted.user_id, folder / "landed", number]
                asks.write(json.dumps(arguments, default=str) + "\n")
                asks.flush()
                assert int(answers.readline()) == -signal.SIGKILL

            return kill

        yield at_call
        asks.close()


@pytest.fixture(scope="module")
def measured(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, float]:
    """The calls of a forgetting to kill it at, and how long its process takes."""
    folder = tmp_path_factory.mktemp("measured") / "copy"
    shutil.copytree(planted.folder, folder, symlinks=True)
    began = time.monotonic()
    with forget(folder, planted.user_id) as process:
        out, _ = process.communicate(timeout=SECONDS)
    return json.loads(out), time.monotonic() - began


def test_forget_killed_at_some_file_system_calls(planted, at_call, measured, tmp_path):
    numbers = random.Random(2).sample(measured[0], 6)
    kill_each(planted, tmp_path, [at_call(number) for number in numbers])


# In parts, none of which comes near the time limit of a test on a slow machine.
@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_forget_killed_at_each_file_system_call(planted, at_call, measured, tmp_path, part):
    kill_each(planted, tmp_path, [at_call(number) for number in measured[0][part::6]])
