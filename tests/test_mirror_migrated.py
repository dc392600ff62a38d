"""A mirror of an earlier version: read as it is, brought forward by the next sync, never half."""

import json
from pathlib import Path
from typing import Any

import pytest

from backread import MirrorError
from mirrors import BatchSource, batch, marked, rows

pytest.importorskip("duckdb")

import duckdb

from backread.mirror import Mirror, migrate
from backread.mirror.engine import connect, rows_of
from backread.mirror.schema import SCHEMA_VERSION, create_statements
from mirror_version1 import make_version1

COLUMNS = "SELECT table_name, column_name, data_type FROM duckdb_columns() ORDER BY ALL"


def version(mirror: Mirror) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        return connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchall()


def columns(path: Path | None, *statements: str) -> list[tuple[Any, ...]]:
    connection = connect(path)
    for statement in statements:
        rows_of(connection, statement)
    found = rows_of(connection, COLUMNS)
    connection.close()
    return found


def shown() -> BatchSource:
    return BatchSource(
        batch(
            [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace H."}],
            [{"user_id": 1, "id": 11, "body": "one"}, {"user_id": 2, "id": 21, "body": "three"}],
            swept="snapshot",
            lists={1: "snapshot", 2: "snapshot"},
        )
    )


def test_rows_are_kept_and_the_next_sync_is_right(mirror):
    make_version1(mirror.folder)
    source = shown()
    report = source.sync_into(mirror.folder, "full")
    assert version(mirror) == [(str(SCHEMA_VERSION),)]
    assert (report.run_id, report.users_added, report.messages_added) == (2, 0, 0)
    assert (report.users_updated, report.deleted) == (1, 1)
    assert marked(mirror) == ([3], [12])
    assert rows(mirror, "SELECT name FROM users ORDER BY id") == [
        ("Ada",),
        ("Grace H.",),
        ("Gone",),
    ]
    assert rows(mirror, "SELECT run_id, deleted, lists_by_kind FROM runs ORDER BY 1") == [
        (1, 1, None),
        (2, 1, {"whole": 2}),
    ]


def test_what_is_known_of_its_lists_is_handed_on(mirror):
    make_version1(mirror.folder)
    source = shown()
    source.sync_into(mirror.folder)
    assert source.known is not None
    lists = {each["user_id"]: each for each in source.known["lists"]}
    assert lists[1]["kind"] == "whole"
    assert lists[1]["swept_at"] == lists[1]["ended_at"]
    assert lists[1]["ended_at"].year == 2026
    assert (lists[1]["rows"], lists[1]["certificate"], lists[1]["last_ids"]) == (
        2,
        "snapshot",
        None,
    )
    assert lists[2]["kind"] == "gone"


def test_run_that_was_unfinished_goes_on(mirror):
    make_version1(mirror.folder, unfinished=True)
    source = BatchSource(
        batch(
            [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}],
            [{"user_id": 2, "id": 21, "body": "three"}],
            swept="snapshot",
            lists={2: "snapshot"},
        )
    )
    report = source.sync_into(mirror.folder)
    assert (report.run_id, report.resumed, report.deleted) == (2, True, 0)
    assert source.done == [1]
    # Version 1 did not note when the users were swept, so they are read again.
    assert source.known is not None
    assert source.known["users"] == []
    newest = "SELECT count(*) FROM messages, runs WHERE run_id = 2 AND last_seen_at = runs.ended_at"
    assert rows(mirror, newest) == [(3,)]


def test_snapshot_that_it_published_is_read_until_the_next_one(mirror):
    make_version1(mirror.folder)
    assert [each.body for each in mirror.conversation(1)] == ["one", "two"]
    assert rows(mirror, "SELECT lists_by_kind, resumptions, rows_asked FROM runs") == [
        (None, 0, None)
    ]
    assert rows(mirror, "SELECT kind, rows FROM lists ORDER BY user_id") == [(None, 2), (None, 0)]
    assert rows(mirror, "SELECT * FROM profile") == []
    assert mirror.profile is None
    assert version(mirror) == [("1",)]


def test_its_report_can_be_printed(mirror, capfd):
    pytest.importorskip("typer")
    from backread.cli.app import run

    make_version1(mirror.folder)
    assert run(["runs", str(mirror.folder)]) == 0
    assert "full" in capfd.readouterr().out


def test_upgrade_that_fails_leaves_the_version_before(mirror, monkeypatch):
    make_version1(mirror.folder)
    broken = (*migrate.CONVERSIONS[SCHEMA_VERSION], "SELECT no_such_column FROM lists")
    monkeypatch.setitem(migrate.CONVERSIONS, SCHEMA_VERSION, broken)
    with pytest.raises(MirrorError, match="no_such_column"):
        shown().sync_into(mirror.folder)
    assert version(mirror) == [("1",)]
    monkeypatch.undo()
    assert shown().sync_into(mirror.folder).run_id == 2


def test_brought_forward_it_is_as_one_made_new(mirror, tmp_path):
    make_version1(mirror.folder)
    shown().sync_into(mirror.folder)
    assert columns(mirror.folder / "mirror.duckdb") == columns(None, *create_statements("new"))


def test_versions_have_their_conversions():
    assert list(migrate.CONVERSIONS) == list(range(2, SCHEMA_VERSION + 1))


def test_column_that_a_mirror_lacks_is_added_by_the_next_sync(mirror):
    source = shown()
    source.sync_into(mirror.folder)
    before = columns(mirror.folder / "mirror.duckdb")
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        connection.execute("ALTER TABLE messages DROP COLUMN file_url")
    snapshot = mirror.folder / "published" / "current"
    for file in (snapshot / "messages").glob("*.parquet"):
        narrow = file.with_suffix(".narrow")
        duckdb.sql(f"SELECT * EXCLUDE (file_url) FROM '{file}'").write_parquet(str(narrow))
        narrow.replace(file)
    document = json.loads((snapshot / "snapshot.json").read_bytes())
    del document["tables"]["messages"]["columns"]["file_url"]
    (snapshot / "snapshot.json").write_text(json.dumps(document))
    # Until then the snapshot is read as it is, with nulls.
    assert [each.body for each in Mirror(mirror.folder).conversation(1)] == ["one"]
    assert rows(Mirror(mirror.folder), "SELECT file_url FROM messages") == [(None,), (None,)]

    sent = {"user_id": 2, "id": 21, "body": "three", "file_url": "https://example.com/a"}
    BatchSource(batch([], [sent], lists={2: "counted"})).sync_into(mirror.folder)
    assert columns(mirror.folder / "mirror.duckdb") == before
    assert rows(mirror, "SELECT id, file_url FROM messages ORDER BY id") == [
        (11, None),
        (21, "https://example.com/a"),
    ]


def test_mirror_whose_version_is_newer_is_left_as_it_is(mirror):
    make_version1(mirror.folder)
    newer = str(SCHEMA_VERSION + 1)
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [newer])
    with pytest.raises(MirrorError, match=rf"newer backread.*schema {newer}.*upgrade"):
        shown().sync_into(mirror.folder)
    assert version(mirror) == [(newer,)]
    # It can be read all the same.
    assert rows(mirror, "SELECT count(*) FROM users") == [(3,)]
