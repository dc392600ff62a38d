"""The published files: which are written anew, how they are split, and how long they stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from backread.testing import MockServer, World
from mirrors import BatchSource, batch, data_files, rows, sync

pytest.importorskip("duckdb")

from backread.mirror import Mirror, publish


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=40, messages_per_user=(0, 20))) as running:
        yield running


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "chats")


def stored(mirror: Mirror) -> set[str]:
    return {entry.name for entry in (mirror.folder / "published").glob("*.parquet")}


def test_replaced_files_stay_for_their_readers_and_go_in_time(
    mirror: Mirror, server: MockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: set[str] = set()
    for _ in range(3):
        server.world.add_messages(server.world.user_ids()[0], 1)
        sync(mirror, server)
        first = first or data_files(mirror, "messages")
    replaced = first - data_files(mirror, "messages")
    assert replaced
    # Two snapshots later, and within a quarter of an hour.
    assert replaced <= stored(mirror)
    manifest = mirror.folder / "published" / "manifest.json"
    assert replaced <= json.loads(manifest.read_bytes())["retired"].keys()
    monkeypatch.setattr(publish, "RETIRED_FOR", timedelta(0))
    sync(mirror, server)
    assert not replaced & stored(mirror)


def test_readers_are_given_a_quarter_of_an_hour() -> None:
    assert timedelta(minutes=15) <= publish.RETIRED_FOR


def test_table_that_grows_is_split_into_more_files(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
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
