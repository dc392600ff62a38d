"""The published files: which are written anew, how they are split, and how long they stay."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backread.testing import MockServer, World
from mirrors import BatchSource, Row, batch, data_files, ended, rows, sync

pytest.importorskip("duckdb")

import duckdb

from backread.mirror import Mirror, manifest, publish


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=40, messages_per_user=(0, 20))) as running:
        yield running


def stored(mirror: Mirror) -> set[str]:
    return {entry.name for entry in (mirror.folder / "published").glob("*.parquet")}


def test_replaced_files_stay_for_their_readers_and_go_in_time(mirror, server, monkeypatch):
    first: set[str] = set()
    for _ in range(3):
        for user_id in server.world.user_ids():
            server.world.add_messages(user_id, 5)
        sync(mirror, server)
        first = first or data_files(mirror, "messages")
    replaced = first - data_files(mirror, "messages")
    assert replaced
    # Two snapshots later, and within a quarter of an hour.
    assert replaced <= stored(mirror)
    written = mirror.folder / "published" / "manifest.json"
    assert replaced <= json.loads(written.read_bytes())["retired"].keys()
    monkeypatch.setattr(publish, "RETIRED_FOR", timedelta(0))
    sync(mirror, server)
    assert not replaced & stored(mirror)


def test_readers_are_given_a_quarter_of_an_hour():
    assert timedelta(minutes=15) <= publish.RETIRED_FOR


def test_table_that_grows_is_split_into_more_files(mirror, monkeypatch):
    monkeypatch.setattr(publish, "MINIMUM_PARTS", 2)
    monkeypatch.setattr(publish, "ROWS_PER_PART", 10)
    sizes = []
    for count in (15, 20, 21, 70, 3):
        users = [{"id": each} for each in range(count)]
        messages = [{"user_id": each, "id": each} for each in range(count)]
        BatchSource(batch(users, messages, swept="uncertified")).sync_into(mirror.folder)
        sizes.append((len(data_files(mirror, "users")), len(data_files(mirror, "messages"))))
        expected = [(each,) for each in range(max(count, 70 if count == 3 else 0))]
        # Each row is in one file, and in one only.
        assert rows(mirror, "SELECT id FROM users ORDER BY id") == expected
        assert rows(mirror, "SELECT id FROM messages ORDER BY id") == expected
    assert sizes == [(2, 2), (2, 2), (4, 4), (8, 8), (8, 8)]


USERS = range(64)


def told(mirror: Mirror, messages: Sequence[Row]) -> None:
    """A sync of lists whose growing ends showed these messages and proved that all others stay."""
    users = [{"id": each} for each in USERS]
    ends = [ended(each, kind="end") for each in USERS]
    BatchSource(batch(users, messages, swept="uncertified", lists=ends)).sync_into(mirror.folder)


def seeded(mirror: Mirror) -> list[Row]:
    """Fills the mirror with so many messages that a few changes are few in every part."""
    said: list[Row] = [
        {"user_id": user, "id": user * 1000 + each, "body": "as it was"}
        for user in USERS
        for each in range(50)
    ]
    told(mirror, said)
    return said


def test_few_changes_are_written_beside_the_parts(mirror):
    said = seeded(mirror)
    before = data_files(mirror, "messages")
    for count, changed in ((1, said[::500]), (2, said[250::500])):
        now = [each | {"body": f"change {count}"} for each in changed]
        told(mirror, now)
        files = data_files(mirror, "messages")
        # The rows that changed so far, and where their old state stands.
        assert before < files
        assert len(files - before) == 2
        bodies = "SELECT count(*), count(DISTINCT (user_id, id)) FROM messages"
        assert rows(mirror, bodies) == [(len(said), len(said))]
        assert rows(mirror, f"{bodies} WHERE body = 'change {count}'") == [(len(now), len(now))]
    assert rows(mirror, f"{bodies} WHERE body = 'change 1'") == [(len(said[::500]),) * 2]
    # Asked for alone, which lets DuckDB leave out what it need not read, each user has its rows.
    alone = [rows(mirror, f"{bodies} WHERE user_id = {user}") for user in USERS]
    assert alone == [[(50, 50)]] * len(USERS)


def test_rows_that_came_are_beside_the_parts_and_hide_nothing(mirror):
    said = seeded(mirror)
    before = data_files(mirror, "messages")
    told(mirror, [{"user_id": 1, "id": 7}])
    assert len(data_files(mirror, "messages") - before) == 1
    assert rows(mirror, "SELECT count(*) FROM messages") == [(len(said) + 1,)]


def test_part_of_which_much_changed_is_written_anew_alone(mirror):
    said = seeded(mirror)
    before = data_files(mirror, "messages")
    now = [each | {"body": "anew"} for each in said if each["user_id"] == 7]
    told(mirror, now)
    after = data_files(mirror, "messages")
    assert (len(after - before), len(before - after)) == (1, 1)
    assert rows(mirror, "SELECT DISTINCT user_id FROM messages WHERE body = 'anew'") == [(7,)]
    assert rows(mirror, "SELECT count(*) FROM messages") == [(len(said),)]


class Killed(BaseException):
    """Ends a publication where it stands."""


def killed(*_: object) -> None:
    raise Killed


def killed_after(folder: Path, snapshot: manifest.Manifest) -> None:
    manifest.write_manifest(folder, snapshot)
    raise Killed


def kept(mirror: Mirror, table: str) -> list[Any]:
    """The rows of a table in the database, as a reader has to see them."""
    with duckdb.connect(str(mirror.folder / "mirror.duckdb"), read_only=True) as connection:
        return connection.execute(shown(table)).fetchall()


def shown(table: str) -> str:
    # Null stands for the newest finished run.
    seen = "coalesce(last_seen_at, (SELECT max(ended_at) FROM runs))"
    return (
        f"SELECT (COLUMNS(* REPLACE ({seen} AS last_seen_at)))::VARCHAR FROM {table} ORDER BY ALL"
    )


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_published_tables_are_those_of_the_database(mirror, monkeypatch, seed):
    chance = random.Random(seed)
    monkeypatch.setattr(publish, "MINIMUM_PARTS", 2)
    monkeypatch.setattr(publish, "ROWS_PER_PART", 150)
    monkeypatch.setattr(publish, "CHANGED_SHARE", 0.2)
    service: dict[int, dict[int, str]] = {}
    kinds: set[str] = set()
    for step in range(14):
        for _ in range(chance.choice([0, 1, 3, 60]) if step else 400):
            user = chance.randrange(25)
            said = service.setdefault(user, {})
            said[chance.randrange(40)] = f"text of step {step}"
        if chance.random() < 0.3:
            del service[chance.choice([*service])]
        for user in chance.sample([*service], min(2, len(service))):
            for message in chance.sample([*service[user]], len(service[user]) // 9):
                del service[user][message]
        given = batch(
            [{"id": user, "name": str(len(said))} for user, said in service.items()],
            [
                {"user_id": user, "id": message, "body": body}
                for user, said in service.items()
                for message, body in said.items()
            ],
            swept="snapshot",
            lists=dict.fromkeys(service, "snapshot"),
        )
        before: set[str] = data_files(mirror, "messages") if step else set()
        with monkeypatch.context() as broken:
            if chance.random() < 0.2:
                broken.setattr(publish, "write_manifest", chance.choice([killed, killed_after]))
                with pytest.raises(Killed):
                    BatchSource(given).sync_into(mirror.folder, "full")
        BatchSource(given).sync_into(mirror.folder, chance.choice(["full", "incremental"]))
        for table in ("users", "messages"):
            assert rows(mirror, shown(table)) == kept(mirror, table)
        files = data_files(mirror, "messages")
        if before:
            kinds |= {re.split(r"[-.]", name)[0] for name in files - before}
    assert len(kinds) == 3
