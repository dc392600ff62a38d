"""When rows were last seen, where only the growing end of a list is read; what is left alone."""

from pathlib import Path
from typing import Any

import pytest

from helpers.mirrors import BatchSource, Row, batch, data_files, ended, rows

pytest.importorskip("duckdb")

import duckdb

from backread.mirror import Mirror

USERS: list[Row] = [{"id": 1}, {"id": 2}]
MESSAGES: list[Row] = [{"user_id": 1, "id": each, "body": str(each)} for each in range(100, 220)]
OTHERS: list[Row] = [{"user_id": 2, "id": each} for each in (1, 2)]
SEEN_BY = """
    SELECT messages.id, run_id FROM messages JOIN runs ON last_seen_at = ended_at
    WHERE user_id = 1 ORDER BY messages.id
"""


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path / "chats")
    whole = ended(1, "counted", rows=120, last_ids=[216, 217, 218, 219], grows="end")
    BatchSource(
        batch(USERS, MESSAGES + OTHERS, swept="snapshot", lists=[whole, ended(2)])
    ).sync_into(mirror.folder)
    return mirror


def at_its_end(*new: int, certificate: str = "counted") -> BatchSource:
    """Ten known messages and the new ones of user 1, both of user 2."""
    read = MESSAGES[-10:] + [{"user_id": 1, "id": each, "body": str(each)} for each in new]
    end = ended(1, certificate, rows=120 + len(new), kind="end")  # type: ignore[arg-type]
    return BatchSource(batch(USERS, read + OTHERS, swept="snapshot", lists=[end, ended(2)]))


def stored(mirror: Mirror) -> list[tuple[Any, ...]]:
    """All rows with where they lie in the writer's tables."""
    with duckdb.connect(str(mirror.folder / "mirror.duckdb"), read_only=True) as connection:
        return [
            row
            for table in ("users", "messages")
            for row in connection.execute(
                f"SELECT '{table}', rowid, id, first_seen_at::VARCHAR, last_seen_at::VARCHAR "
                f"FROM {table} ORDER BY rowid"
            ).fetchall()
        ]


def test_last_seen_of_unread_rows_moves_with_a_certified_end(mirror):
    report = at_its_end(220).sync_into(mirror.folder)
    assert (report.messages_added, report.messages_updated) == (1, 0)
    assert report.lists_by_kind == {"end": 1, "whole": 1}
    assert rows(mirror, SEEN_BY) == [(each, 2) for each in range(100, 221)]


def test_sync_without_changes_rewrites_no_row_and_no_file(mirror):
    before = stored(mirror), data_files(mirror, "users"), data_files(mirror, "messages")
    for _ in range(3):
        at_its_end().sync_into(mirror.folder)
        after = stored(mirror), data_files(mirror, "users"), data_files(mirror, "messages")
        assert after == before
    assert rows(mirror, SEEN_BY) == [(each, 4) for each in range(100, 220)]


def test_sync_of_one_new_message_rewrites_one_file(mirror):
    before = data_files(mirror, "users"), data_files(mirror, "messages")
    at_its_end(220).sync_into(mirror.folder)
    assert data_files(mirror, "users") == before[0]
    assert len(data_files(mirror, "messages") - before[1]) == 1


def test_last_seen_of_a_row_missed_by_a_sweep_stays(mirror):
    shown = [each for each in MESSAGES if each["id"] != 105]
    whole = ended(1, "linked", rows=119)
    BatchSource(batch(USERS, shown + OTHERS, swept="snapshot", lists=[whole, ended(2)])).sync_into(
        mirror.folder
    )
    at_its_end().sync_into(mirror.folder)
    assert dict(rows(mirror, SEEN_BY)) == {
        each: 1 if each == 105 else 3 for each in range(100, 220)
    }


def test_last_seen_of_unread_rows_stays_if_the_end_is_uncertified(mirror):
    at_its_end(certificate="uncertified").sync_into(mirror.folder)
    assert dict(rows(mirror, SEEN_BY)) == {each: 1 + (each >= 210) for each in range(100, 220)}


def test_sync_reads_whole_the_list_of_a_user_missing_in_the_last_run(mirror):
    only = BatchSource(batch(USERS[1:], OTHERS, swept="linked", lists=[ended(2)]))
    only.sync_into(mirror.folder)
    assert dict(rows(mirror, SEEN_BY)) == dict.fromkeys(range(100, 220), 1)
    third = BatchSource(batch(USERS, MESSAGES + OTHERS, swept="linked", lists=[ended(1), ended(2)]))
    third.sync_into(mirror.folder)
    assert third.known is not None
    assert [each["user_id"] for each in third.known["lists"]] == [2]
    assert dict(rows(mirror, SEEN_BY)) == dict.fromkeys(range(100, 220), 3)


def test_sync_hands_back_the_state_of_each_list(mirror):
    again = BatchSource()
    again.sync_into(mirror.folder)
    assert again.known is not None
    [first, second] = sorted(again.known["lists"], key=lambda each: each["user_id"])
    assert (first["rows"], first["last_ids"], first["grows"]) == (120, [216, 217, 218, 219], "end")
    assert (second["rows"], second["last_ids"], second["certificate"]) == (0, None, "snapshot")
    assert first["ended_at"].tzinfo is not None
    assert rows(mirror, "SELECT user_id, kind, last_ids FROM lists ORDER BY 1") == [
        (1, "whole", [216, 217, 218, 219]),
        (2, "whole", None),
    ]


def test_sync_hands_on_mode_max_staleness_and_profile(mirror):
    source = BatchSource()
    source.sync_into(mirror.folder, "full", max_staleness=60.0, profile='{"version": 1}')
    assert (source.mode, source.max_staleness, source.profile) == ("full", 60.0, {"version": 1})
    later = BatchSource()
    later.sync_into(mirror.folder)
    assert (later.mode, later.max_staleness, later.profile) == (
        "incremental",
        None,
        {"version": 1},
    )
    assert rows(mirror, "SELECT profile FROM profile") == [('{"version": 1}',)]
