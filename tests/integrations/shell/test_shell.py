"""The DuckDB shell over a mirror, by the views of ``chats.duckdb``, also during a sync."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backread import Mirror
from backread.testing import MockServer, World
from helpers.mirrors import sync

SHELL = Path(sys.executable).with_name("duckdb")
SECONDS = 60


def views(mirror: Mirror, query: str) -> list[dict[str, Any]]:
    """The rows that the shell prints."""
    done = subprocess.run(
        [str(SHELL), "-json", "-readonly", str(mirror.folder / "chats.duckdb"), "-c", query],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return found


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=40, messages_per_user=(1, 30))) as running:
        yield running


@pytest.fixture
def mirror(server: MockServer, tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path / "it's a mirror [1]" / "chats")
    sync(mirror, server)
    return mirror


def test_the_views_are_the_tables_of_the_mirror_also_during_a_sync(mirror, server):
    for name in ("users", "messages", "conversations", "lists", "rejects", "runs", "forgotten"):
        [(count,)] = mirror.sql(f"SELECT count(*) FROM {name}").fetchall()
        assert views(mirror, f"SELECT count(*)::INT AS rows FROM {name}") == [{"rows": count}], name
    query = (
        "SELECT user_id::INT AS user_id, name, messages::INT AS messages, complete, "
        "first_response_seconds::DOUBLE AS seconds FROM conversations ORDER BY 1"
    )
    names = mirror.sql(query).columns
    expected = [dict(zip(names, row, strict=True)) for row in mirror.sql(query).fetchall()]
    assert views(mirror, query) == expected
    # A sync may run while a shell has it open.
    open_one = subprocess.Popen(
        [str(SHELL), "-readonly", "-json", str(mirror.folder / "chats.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with open_one:
        assert open_one.stdin is not None
        assert open_one.stdout is not None
        open_one.stdin.write("SELECT 1 AS began;\n")
        open_one.stdin.flush()
        assert "began" in open_one.stdout.readline()
        server.world.add_messages(server.world.user_ids()[0], 5)
        sync(mirror, server)
        query = "SELECT count(*)::INT AS rows FROM messages;\n"
        out, _ = open_one.communicate(query, SECONDS)
    assert json.loads(out) == views(mirror, query) == [{"rows": server.world.total_messages}]
