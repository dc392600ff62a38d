"""Forgetting a user: nothing is left in any file, no sync brings the user back, others stay."""

import shutil
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from backread import MirrorError
from backread.mirror import Mirror
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.file_modes import largest_file
from helpers.file_traces import state, traces
from helpers.mirrors import BatchSource, batch, half_read, rows, sync

WHO = 42
OTHER = 7
EARLIER = datetime(2026, 3, 1, tzinfo=UTC)

MARKS = [f"mark{place:02}-Zoë-9f3b" for place in range(17)]
"""One for each text field; the accent has another form in JSON and in UTF-16."""


def person(user_id: int, marks: list[str]) -> dict[str, Any]:
    return {
        "id": user_id,
        "name": marks[0],
        "email": marks[1],
        "reference": marks[2],
        "last_url": marks[3],
        "user_attributes": [
            {"name": marks[4], "value": marks[5], "extra": f'{{"a":"{marks[6]}"}}'}
        ],
        "extra": f'{{"b":"{marks[7]}"}}',
    }


def said(user_id: int, message_id: int, marks: list[str]) -> dict[str, Any]:
    return {
        "user_id": user_id,
        "id": message_id,
        "body": marks[8],
        "created_at": EARLIER,
        "file_url": f"https://files.example.com/{marks[9]}.pdf",
        "sender_type": "user",
        "sender_name": marks[10],
        "sender_email": marks[11],
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
    spilled = planted.folder / "chats.duckdb.tmp" / "duckdb_temp_storage-0.tmp"
    spilled.parent.mkdir()
    spilled.write_text(MARKS[0])
    assert f"chats.duckdb: {MARKS[0]}" in traces(planted.folder, MARKS[0])
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
