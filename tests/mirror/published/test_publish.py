"""The published snapshots: which files are written again, how they are cut, how long they stay."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from backread.mirror import Mirror
from backread.mirror.published import manifest, publish, ranges
from backread.testing import MockServer, World
from helpers.mirrors import BatchSource, Row, batch, data_files, ended, rows, sync


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=40, messages_per_user=(0, 20))) as running:
        yield running


def snapshots(mirror: Mirror) -> set[str]:
    """The names of the snapshots that are there."""
    return {each.name for each in (mirror.folder / "published").glob("[0-9]*")}


def current(mirror: Mirror) -> Path:
    return (mirror.folder / "published" / "current").resolve()


def by_path(mirror: Mirror, query: str) -> list[tuple[Any, ...]]:
    """A query without backread; ``{table}`` is a pattern."""
    path = str(mirror.folder / "published" / "current").replace("'", "''")
    filled = query.replace("{", f"'{path}/").replace("}", "/*.parquet'")
    with duckdb.connect() as connection:
        return connection.execute(filled).fetchall()


def test_replaced_snapshots_stay_for_their_readers_and_go_in_time(mirror, server, monkeypatch):
    for _ in range(3):
        sync(mirror, server)
    assert timedelta(minutes=15) <= manifest.RETIRED_FOR
    assert snapshots(mirror) == {"00000001", "00000002", "00000003"}
    retired = json.loads((current(mirror) / "snapshot.json").read_bytes())["retired"]
    assert retired.keys() == {"00000001", "00000002"}
    monkeypatch.setattr(manifest, "RETIRED_FOR", timedelta(0))
    sync(mirror, server)
    assert snapshots(mirror) == {"00000004"}


def test_table_that_grows_is_cut_into_more_files_and_one_that_shrinks_into_fewer(
    mirror, monkeypatch
):
    # A message takes about 200 bytes in memory.
    monkeypatch.setattr(ranges, "FILE_BYTES", 2000)
    sizes = {}
    for count in (0, 5, 25, 70):
        users = [{"id": each} for each in range(count)]
        messages = [{"user_id": each, "id": each} for each in range(count)]
        BatchSource(batch(users, messages, swept="uncertified")).sync_into(mirror.folder)
        sizes[count] = len(data_files(mirror, "messages"))
        # Each row is in one file, and in one only, also for who reads by path.
        expected = [(each,) for each in range(count)]
        assert rows(mirror, "SELECT id FROM messages ORDER BY id") == expected
        for table in ("messages", "users"):
            assert by_path(mirror, f"SELECT id FROM {{{table}}} ORDER BY id") == expected
    assert [sizes[0], sizes[5], sizes[25]] == [0, 1, 2]
    assert 6 <= sizes[70] <= 9
    for left in (3, 0):
        mirror.forget(*range(left, 70))
        assert len(data_files(mirror, "messages")) == (left > 0)
        ids = [(each,) for each in range(left)]
        assert by_path(mirror, "SELECT id FROM {messages} ORDER BY id") == ids


USERS = range(64)


def told(mirror: Mirror, messages: list[Row]) -> None:
    """A sync of lists whose growing ends showed these messages and proved that all others stay."""
    users = [{"id": each} for each in USERS]
    ends = [ended(each, kind="end") for each in USERS]
    BatchSource(batch(users, messages, swept="uncertified", lists=ends)).sync_into(mirror.folder)


def seeded(mirror: Mirror) -> list[Row]:
    """Fills the mirror with so many messages that a few changes are few in every part."""
    ids = [(user, user * 1000 + each) for user in USERS for each in range(50)]
    said: list[Row] = [{"user_id": user, "id": each, "body": "as it was"} for user, each in ids]
    told(mirror, said)
    return said


def test_only_the_files_of_users_with_changes_are_written_again(mirror, monkeypatch):
    monkeypatch.setattr(publish, "FILE_BYTES", 80_000)
    said = seeded(mirror)
    before = data_files(mirror, "messages")
    users = data_files(mirror, "users")
    assert len(before) > 4
    now = [each | {"body": "anew"} for each in said if each["user_id"] == 7]
    told(mirror, now)
    after = data_files(mirror, "messages")
    assert len(before & after) == len(before) - 1
    assert len(after) == len(before)
    assert data_files(mirror, "users") == users
    assert rows(mirror, "SELECT DISTINCT user_id FROM messages WHERE body = 'anew'") == [(7,)]
    bodies = "SELECT count(*), count(DISTINCT (user_id, id)) FROM"
    assert rows(mirror, f"{bodies} messages") == [(len(said), len(said))]
    assert by_path(mirror, f"{bodies} {{messages}}") == [(len(said), len(said))]
    # Asked for alone, each user has its rows.
    assert [len(mirror.conversation(user)) for user in USERS] == [50] * len(USERS)


def test_one_conversation_reads_one_file(mirror, monkeypatch):
    monkeypatch.setattr(publish, "FILE_BYTES", 80_000)
    seeded(mirror)
    snapshot = json.loads((current(mirror) / "snapshot.json").read_bytes())
    # DuckDB takes the columns of a table from its first file.
    for file in snapshot["tables"]["messages"][1:]:
        if not (file["low"] or 0) <= 40 < (file["high"] or 99):
            # None of its bytes is to be read.
            (current(mirror) / "messages" / file["name"]).write_bytes(bytes(file["bytes"]))
    assert len(mirror.conversation(40)) == 50


def test_a_database_from_a_backup_is_published_in_full(mirror, tmp_path):
    """What was published after the backup is not of this database, though its files are whole."""
    said = seeded(mirror)
    database, backup = mirror.folder / "mirror.duckdb", tmp_path / "backup"
    shutil.copyfile(database, backup)
    told(mirror, [said[0] | {"body": "anew"}])
    shutil.copyfile(backup, database)
    # The service was restored, too, and has nothing new.
    told(mirror, [])
    assert rows(mirror, "SELECT count(*) FROM messages WHERE body = 'anew'") == [(0,)]
    assert rows(mirror, "SELECT count(*) FROM messages") == [(len(said),)]


class Killed(BaseException):
    """Ends a publication where it stands."""


def killed_after(done: Callable[..., object] | None) -> Callable[..., None]:
    def run(*arguments: Any) -> None:
        if done:
            done(*arguments)
        raise Killed

    return run


STEPS = ("write_manifest", "point_current", "write_views_database", "remove_unneeded")


def kept(mirror: Mirror, table: str) -> list[Any]:
    """The rows of a table in the database, as a reader has to see them."""
    with duckdb.connect(str(mirror.folder / "mirror.duckdb"), read_only=True) as connection:
        return connection.execute(shown(f"(SELECT * EXCLUDE (text_bytes) FROM {table})")).fetchall()


def shown(table: str) -> str:
    # Null stands for the newest finished run.
    newest = "(SELECT max(ended_at) FROM runs)"
    seen = f"coalesce(last_seen_at, greatest(first_seen_at, {newest}))"
    return (
        f"SELECT (COLUMNS(* REPLACE ({seen} AS last_seen_at)))::VARCHAR FROM {table} ORDER BY ALL"
    )


@pytest.mark.parametrize("step", STEPS)
def test_publication_killed_at_any_step_is_done_by_the_next_sync(mirror, monkeypatch, step):
    said = seeded(mirror)
    with monkeypatch.context() as broken:
        # Killed before the next step, too.
        broken.setattr(publish, step, killed_after(getattr(publish, step)))
        with pytest.raises(Killed):
            told(mirror, [said[0] | {"body": "anew"}])
    changed = rows(mirror, "SELECT count(*) FROM messages WHERE body = 'anew'")
    assert changed in ([(0,)], [(1,)])
    assert rows(mirror, "SELECT count(*) FROM messages") == [(len(said),)]
    told(mirror, [])
    assert rows(mirror, "SELECT count(*) FROM messages WHERE body = 'anew'") == [(1,)]
    names = {each.name for each in (mirror.folder / "published").iterdir()}
    retired = json.loads((current(mirror) / "snapshot.json").read_bytes())["retired"]
    assert names == {"current", current(mirror).name, *retired}


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))]
)
def test_published_tables_equal_the_database_whatever_happens(mirror, monkeypatch, seed):
    chance = random.Random(seed)
    monkeypatch.setattr(publish, "FILE_BYTES", 5_000)
    service: dict[int, dict[int, str]] = {}
    kept_files = 0
    for step in range(6):
        for _ in range(chance.choice([0, 1, 3, 60]) if step else 400):
            user = chance.randrange(25)
            said = service.setdefault(user, {})
            said[chance.randrange(40)] = f"text of step {step}"
        if chance.random() < 0.3:
            del service[chance.choice([*service])]
        for user in chance.sample([*service], min(2, len(service))):
            for message in chance.sample([*service[user]], len(service[user]) // 9):
                del service[user][message]
        users = [{"id": user, "name": str(len(said))} for user, said in service.items()]
        messages = [
            {"user_id": user, "id": message, "body": body}
            for user, said in service.items()
            for message, body in said.items()
        ]
        lists: Any = dict.fromkeys(service, "snapshot")
        given = batch(users, messages, swept="snapshot", lists=lists)
        before: set[int] = data_files(mirror, "messages") if step else set()
        with monkeypatch.context() as broken:
            if chance.random() < 0.3:
                step_name = chance.choice(STEPS)
                done = chance.choice([None, getattr(publish, step_name)])
                broken.setattr(publish, step_name, killed_after(done))
                with pytest.raises(Killed):
                    BatchSource(given).sync_into(mirror.folder, "full")
        BatchSource(given).sync_into(mirror.folder, chance.choice(["full", "incremental"]))
        for table in ("users", "messages"):
            assert rows(mirror, shown(table)) == kept(mirror, table)
            count = f"SELECT count(*) FROM {{{table}}}"
            assert by_path(mirror, count)[0][0] == len(kept(mirror, table))
        files = data_files(mirror, "messages")
        kept_files += len(files & before)
    assert kept_files
