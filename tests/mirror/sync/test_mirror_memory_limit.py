"""A sync whose memory limit is too small, or that has no disk for what exceeds it."""

import random
from typing import Any

import pytest

from helpers.mirrors import BatchSource, batch, rows

pytest.importorskip("duckdb")

from backread import MirrorError
from backread.mirror.store import database
from backread.mirror.store.engine import load_duckdb
from backread.mirror.store.memory import read_memory_limit


def wide_rows(count: int, width: int = 10_000) -> BatchSource:
    chance = random.Random(1)
    said = [
        {"user_id": 1, "id": n, "body": chance.randbytes(width // 2).hex()} for n in range(count)
    ]
    return BatchSource(batch([{"id": 1}], said, swept="snapshot"))


def test_memory_limit_that_is_too_small_is_named(mirror):
    with pytest.raises(MirrorError, match=r"memory limit is too small; raise .*try again"):
        wide_rows(4_000).sync_into(mirror.folder, memory_limit=20 * 10**6)
    wide_rows(4_000).sync_into(mirror.folder)
    assert rows(mirror, "SELECT count(*) FROM messages") == [(4_000,)]


def test_disk_without_space_for_what_exceeds_the_memory_limit_is_full(mirror, monkeypatch):
    opened = database._connect

    def connect(*arguments: Any) -> Any:
        connection = opened(*arguments)
        # As DuckDB sets it from what the disk has free.
        connection.execute("SET max_temp_directory_size = '1MB'").fetchall()
        return connection

    with monkeypatch.context() as full:
        full.setattr(database, "_connect", connect)
        with pytest.raises(MirrorError, match="the disk is full; free some space and try again"):
            wide_rows(4_000).sync_into(mirror.folder, memory_limit=20 * 10**6)
    wide_rows(4_000).sync_into(mirror.folder)
    assert rows(mirror, "SELECT count(*) FROM messages") == [(4_000,)]


def test_without_a_limit_a_sync_takes_a_quarter_of_the_memory_and_at_most_4_gb(tmp_path):
    limit = "SELECT current_setting('memory_limit')"
    with load_duckdb().connect() as connection:
        [(own,)] = connection.execute(limit).fetchall()
    with database.open_database(tmp_path) as connection:
        [(taken,)] = connection.execute(limit).fetchall()
    # DuckDB's own limit is 80 % of the memory.
    expected = min(0.25 / 0.8 * read_memory_limit(own), 4 * 10**9)
    assert read_memory_limit(taken) == pytest.approx(max(expected, 256 * 10**6), rel=0.05)


def test_the_database_keeps_few_rows_together_from_sync_to_sync(mirror):
    for _ in range(2):
        wide_rows(40_000, width=100).sync_into(mirror.folder)
    duckdb = load_duckdb()
    with duckdb.connect(mirror.folder / "mirror.duckdb", read_only=True) as held:
        segments = "pragma_storage_info('messages') WHERE column_name = 'body'"
        [(most, compression)] = held.sql(
            f"SELECT max(count), list(DISTINCT compression) FROM {segments} "
            "AND segment_type = 'VARCHAR'"
        ).fetchall()
    assert most <= 16_384
    assert compression == ["ZSTD"]
