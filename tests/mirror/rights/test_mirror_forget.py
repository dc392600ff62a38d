"""Forgetting a user: nothing is left in any file, no sync brings the user back, others stay."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from backread import MirrorError, landing
from backread.mirror import Mirror
from backread.testing import MockServer, World
from helpers import CHILDREN
from helpers.command_line import posix_only
from helpers.file_modes import largest_file
from helpers.file_traces import state, traces
from helpers.mirrors import BatchSource, batch, half_read, rows, sync
from helpers.shards import land

WHO = 42
OTHER = 7
EARLIER = datetime(2026, 3, 1, tzinfo=UTC)

MARKS = [f"mark{place:02}-Zoë-9f3b" for place in range(17)]
"""One for each text field; the accent has another form in JSON and in UTF-16."""


def person(user_id: int, marks: list[str]) -> dict[str, Any]:
    attribute = {"name": marks[4], "value": marks[5], "extra": f'{{"a":"{marks[6]}"}}'}
    return {
        "id": user_id,
        **dict(zip(("name", "email", "reference", "last_url"), marks, strict=False)),
        "user_attributes": [attribute],
        "extra": f'{{"b":"{marks[7]}"}}',
    }


def said(user_id: int, message_id: int, marks: list[str]) -> dict[str, Any]:
    texts = ("body", "file_url", "sender_name", "sender_email")
    return {
        "user_id": user_id,
        "id": message_id,
        "created_at": EARLIER,
        "sender_type": "user",
        **dict(zip(texts, marks[8:], strict=False)),
        "sender_extra": f'{{"c":"{marks[12]}"}}',
        "extra": f'{{"d":"{marks[13]}"}}',
    }


def others() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    ids = [each for each in range(1, 60) if each != WHO]
    users = [person(each, [f"user {each} {mark}" for mark in "abcdefgh"]) for each in ids]
    messages = [
        said(each, number, [f"message {each}.{number}.{mark}" for mark in "abcdefghijklmn"])
        for each in ids
        for number in range(1, 5)
    ]
    return users, messages


@pytest.fixture
def planted(mirror: Mirror) -> Mirror:
    """A mirror with texts of a user everywhere: tables, snapshots, rejects, an unfinished run."""
    users, messages = others()
    users.append(person(WHO, ["before", *MARKS[1:]]))
    messages += [said(WHO, number, MARKS) for number in range(1, 4)]
    reject = {"resource": "messages", "user_id": WHO, "id": 9, "json": f'{{"e":"{MARKS[14]}"}}'}
    lists: Any = {user["id"]: "snapshot" for user in users}
    whole = batch(users, messages, [reject], swept="snapshot", lists=lists)
    BatchSource(whole).sync_into(mirror.folder)
    # Of the earlier snapshot, the unchanged files are linked.
    BatchSource(batch([person(WHO, MARKS)], swept="linked")).sync_into(mirror.folder)
    half = batch(half_read=[half_read(WHO, MARKS[15]), half_read(None, MARKS[15])])
    with pytest.raises(RuntimeError):
        BatchSource(half, RuntimeError(f"cannot read {MARKS[16]}")).sync_into(mirror.folder)
    return mirror


def test_no_byte_of_a_forgotten_user_is_left_in_any_file(planted):
    def others_rows() -> list[Any]:
        keys = {"users": "id", "messages": "user_id", "lists": "user_id"}
        query = "SELECT * FROM {} WHERE {} <> {} ORDER BY ALL"
        return [rows(planted, query.format(*each, WHO)) for each in keys.items()]

    found = "\n".join(traces(planted.folder, *MARKS))
    assert [mark for mark in MARKS if mark not in found] == []
    # The search reads into the database, where bodies are compressed.
    assert f"mirror.duckdb: {MARKS[8]}" in found
    before = others_rows()

    report = planted.forget(WHO)

    assert traces(planted.folder, *MARKS, "before") == []
    assert others_rows() == before
    assert (report.forgotten, report.earlier) == ((WHO,), ())
    assert (report.users, report.messages, report.rejects) == (1, 3, 1)
    assert report.bytes_freed > 0
    at = report.forgotten_at
    assert rows(planted, "SELECT user_id, forgotten_at FROM forgotten") == [(WHO, at)]
    assert datetime.now(UTC) - at < timedelta(minutes=1)
    for table, column in [("users", "id"), ("messages", "user_id"), ("lists", "user_id")]:
        assert rows(planted, f"SELECT * FROM {table} WHERE {column} = {WHO}") == []
    # One snapshot, the new one.
    assert len([*planted.folder.glob("published/0*")]) == 1


def test_a_first_run_that_was_broken_off_forgets_too(mirror):
    broken = batch([{"id": OTHER}, person(WHO, MARKS)], [said(WHO, 1, MARKS)])
    with pytest.raises(RuntimeError):
        BatchSource(broken, RuntimeError("no more")).sync_into(mirror.folder)
    assert traces(mirror.folder, MARKS[0])
    mirror.forget(WHO)
    assert traces(mirror.folder, *MARKS) == []


def test_the_interrupted_run_goes_on_without_the_forgotten_user(planted):
    planted.forget(WHO)
    users, messages = others()
    lists: Any = {each["id"]: "snapshot" for each in users}
    source = BatchSource(batch(users, messages, swept="snapshot", lists=lists))
    report = source.sync_into(planted.folder, "full")
    assert (report.resumed, report.deleted) == (True, 0)
    assert rows(planted, "SELECT count(*) FROM users") == [(len(users),)]
    assert traces(planted.folder, *MARKS) == []


def test_no_later_sync_requests_a_forgotten_user_or_brings_one_back(mirror):
    with MockServer(World(seed=3, users=30, messages_per_user=(1, 30))) as server:
        [who, *_] = server.world.user_ids()
        server.world.edit_user(who, name=MARKS[0])
        server.world.edit_message(who, server.world.message_ids(who)[0], body=MARKS[0])
        sync(mirror, server)
        mirror.forget(who)
        server.forget()
        for options in ({}, {"mode": "full"}):
            server.world.add_messages(who, 2)
            report = sync(mirror, server, **options)
            assert report.certificate == "snapshot"
            assert report.users_added == report.messages_added == report.deleted == 0
            assert traces(mirror.folder, MARKS[0]) == []
        assert who not in {call.user for call in server.calls("messages")}
        assert rows(mirror, "SELECT count(*) FROM users") == [(29,)]
        with pytest.raises(MirrorError, match=f"user {who} was forgotten in this mirror"):
            sync(mirror, server, users=[who])


def test_a_record_that_is_rejected_for_its_id_does_not_come_back(planted):
    theirs = f'{{"id": "{WHO}", "name": "{MARKS[0]}"}}'
    naming = f'{{"id": 3, "user": {{"user_id": {WHO}, "name": "{MARKS[1]}"}}}}'
    number = f'{{"id": {WHO}, "body": {WHO}}}'
    of_other = {"resource": "messages", "user_id": OTHER}
    seen = batch(
        rejects=[
            {"resource": "users", "json": theirs},
            of_other | {"id": 3, "json": naming},
            # A message of that number is another's.
            of_other | {"id": WHO, "json": number},
        ]
    )
    BatchSource(seen).sync_into(planted.folder)
    report = planted.forget(WHO)
    assert report.rejects == 3
    for _ in range(2):
        assert rows(planted, "SELECT user_id, id, json, reason FROM rejects ORDER BY ALL") == [
            (OTHER, 3, None, "its record named a user who was forgotten"),
            (OTHER, WHO, number, "does not fit"),
        ]
        assert traces(planted.folder, *MARKS) == []
        BatchSource(seen).sync_into(planted.folder)


@pytest.mark.parametrize("forgets", [False, True])
def test_who_was_forgotten_stays_so_if_the_database_is_restored(planted, tmp_path, forgets):
    database = planted.folder / "mirror.duckdb"
    shutil.copy(database, tmp_path / "backup")
    planted.forget(WHO)
    shutil.copy(tmp_path / "backup", database)
    if forgets:
        planted.forget(OTHER)
    users, messages = others()
    source = BatchSource(batch(users, messages, swept="snapshot"))
    source.sync_into(planted.folder, publish=False)
    ids = [OTHER, WHO] if forgets else [WHO]
    assert rows(planted, "SELECT user_id FROM forgotten ORDER BY 1") == [(each,) for each in ids]
    assert traces(planted.folder, *MARKS) == []
    assert rows(planted, "SELECT count(*) FROM users") == [(len(users) + 1 - len(ids),)]
    # Where that list is damaged, deleting it, as is advised of other files, would bring them back.
    shutil.copy(tmp_path / "backup", database)
    [path] = planted.folder.glob("published/0*/forgotten/*.parquet")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(MirrorError, match=r"was restored from a backup.*forget them again"):
        source.sync_into(planted.folder)


# --- who is not there -----------------------------------------------------------------------------


def test_forgetting_an_unknown_user_or_twice_says_so_and_writes_nothing(planted):
    before = state(planted.folder)
    with pytest.raises(MirrorError, match="holds nothing of user 4711, so nothing was changed"):
        planted.forget(WHO, 4711)
    assert state(planted.folder) == before
    planted.forget(WHO)
    before = state(planted.folder)
    report = planted.forget(WHO)
    assert (report.forgotten, report.earlier, report.forgotten_at) == ((), (WHO,), None)
    assert state(planted.folder) == before
    assert planted.forget(WHO, OTHER).forgotten == (OTHER,)


# --- others at the same time, and bad luck --------------------------------------------------------


def test_a_disk_without_space_for_a_copy_is_said_before_anything_changes(planted, monkeypatch):
    before = state(planted.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(MirrorError, match=r"needs [\d,]+ bytes of free space, but there are 1,000"):
        planted.forget(WHO)
    assert state(planted.folder) == before
    assert rows(planted, f"SELECT name FROM users WHERE id = {WHO}") == [(MARKS[0],)]


def test_what_another_program_left_beside_the_views_is_removed_too(planted):
    path = planted.folder / "chats.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE mine AS SELECT * FROM users").fetchall()
    spilled = planted.folder / "chats.duckdb.tmp"
    spilled.mkdir()
    (spilled / "duckdb_temp_storage-0.tmp").write_text(MARKS[0])
    planted.forget(WHO)
    assert traces(planted.folder, *MARKS) == []
    with duckdb.connect(path, read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (58,)


@posix_only
def test_a_disk_that_gets_full_meanwhile_is_said_and_the_next_call_completes_it(planted):
    database = planted.folder / "mirror.duckdb"
    with largest_file(database.stat().st_size // 2):
        with pytest.raises(MirrorError, match=r"mirror\.duckdb.*texts may be left in files until"):
            planted.forget(WHO)
        assert rows(planted, f"SELECT * FROM users WHERE id = {WHO}") == []
    assert traces(planted.folder, *MARKS)
    assert planted.forget(WHO).earlier == (WHO,)
    assert traces(planted.folder, *MARKS) == []


# --- killed with -9 -------------------------------------------------------------------------------


CHILD = CHILDREN / "forget_killed.py"
TEXTS = ["name-Zoë-c40", "body-Zoë-c40"]


@dataclass
class Shared:
    """A folder with a mirror and a landing that have texts of a user, and what others have."""

    folder: Path
    server: MockServer
    user_id: int
    others: list[Any]
    landed: list[Any]


def rows_of_others(folder: Path) -> list[Any]:
    query = "SELECT * FROM {} WHERE coalesce({}, '') NOT LIKE '%Zoë%' ORDER BY ALL"
    tables = (("users", "name"), ("messages", "body"))
    return [rows(Mirror(folder / "chats"), query.format(*each)) for each in tables]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("shared")
    world = World(seed=4, users=20, messages_per_user=(1, 12))
    user_id = world.user_ids()[8]
    world.edit_user(user_id, name=TEXTS[0])
    for message_id in world.message_ids(user_id):
        world.edit_message(user_id, message_id, body=TEXTS[1])
    with MockServer(world) as server:
        mirror = Mirror(folder / "chats")
        sync(mirror, server)
        world.edit_user(world.user_ids()[0], name="Changed")
        # The earlier snapshot is retired, and still there.
        sync(mirror, server)
        land(folder / "landed", server)
        landed = landed_by_others(folder, user_id)
        yield Shared(folder, server, user_id, rows_of_others(folder), landed)


def landed_by_others(folder: Path, user_id: int) -> list[Any]:
    [run] = landing.runs(folder / "landed")
    found = landing.dataset(folder / "landed", run).to_table().to_pylist()
    return [row for row in found if row["user_id"] != user_id]


def check(shared: Shared, folder: Path, syncs: bool) -> None:
    """Whatever the kill left: readers see all of the user or nothing; the next call ends it."""
    mirror = Mirror(folder / "chats")
    messages = len(shared.server.world.message_ids(shared.user_id))
    assert rows_of_others(folder) == shared.others
    counts = (
        "SELECT (SELECT count(*) FROM users WHERE id = {0}), "
        "(SELECT count(*) FROM messages WHERE user_id = {0}), (SELECT count(*) FROM forgotten)"
    )
    assert rows(mirror, counts.format(shared.user_id)) in ([(1, messages, 0)], [(0, 0, 1)])
    if syncs:
        sync(mirror, shared.server)
        if rows(mirror, "SELECT count(*) FROM forgotten") == [(1,)]:
            assert traces(folder / "chats", *TEXTS) == []
    mirror.forget(shared.user_id, landings=[folder / "landed"])
    assert traces(folder, *TEXTS) == []
    assert [*folder.rglob(".*")] == []
    assert [row[:10] for row in rows_of_others(folder)[0]] == [row[:10] for row in shared.others[0]]
    assert landed_by_others(folder, shared.user_id) == shared.landed
    [run] = landing.runs(folder / "landed")
    assert run.rows == len(shared.landed)


Forget = Callable[[Path, int], Any]


@pytest.fixture(scope="module")
def forget_in_child(shared: Shared) -> Iterator[Forget]:
    """Forgets in a process that is killed at the call of a number; see forget_killed.py."""
    with subprocess.Popen(
        [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, answers = process.stdin, process.stdout

        def forget(folder: Path, number: int) -> Any:
            arguments = [folder / "chats", shared.user_id, folder / "landed", number]
            asks.write(json.dumps(arguments, default=str) + "\n")
            asks.flush()
            return json.loads(answers.readline())

        yield forget
        asks.close()


def copied(shared: Shared, folder: Path) -> Path:
    # As a backup would: the link `current` stays one.
    shutil.copytree(shared.folder, folder, symlinks=True)
    return folder


@pytest.fixture(scope="module")
def calls(
    shared: Shared, forget_in_child: Forget, tmp_path_factory: pytest.TempPathFactory
) -> list[int]:
    """The calls of a forgetting to kill it at."""
    numbers: list[int] = forget_in_child(copied(shared, tmp_path_factory.mktemp("whole") / "a"), 0)
    return numbers


IN_SIX_PARTS = [pytest.param(slice(n, None, 6), marks=pytest.mark.long) for n in range(6)]


# None of the long parts comes near the time limit of a test on a slow machine.
@posix_only
@pytest.mark.parametrize("part", [slice(5, None, 15), *IN_SIX_PARTS])
def test_forget_killed_at_file_system_calls(shared, forget_in_child, calls, tmp_path, part):
    for number in calls[part]:
        folder = copied(shared, tmp_path / str(number))
        assert forget_in_child(folder, number) == -signal.SIGKILL
        check(shared, folder, syncs=number % 2 == 0)
