"""The first run of a mirror: it adds rows at once, and notes less than later ones do."""

import pytest

from backread import ConnectError, MirrorError
from helpers.mirrors import Batch, BatchSource, Row, batch, cursor, marked, rows

pytest.importorskip("duckdb")

from backread.mirror import Mirror
from backread.mirror.published import publish
from backread.mirror.published.manifest import file_name
from backread.mirror.sync.report import Mode

BROKEN = ConnectError("the connection broke")
USERS: list[Row] = [{"id": 1}, {"id": 2}]
SEEN_NOW = "SELECT id FROM messages, runs WHERE last_seen_at = ended_at ORDER BY ALL"


def broken_off(mirror: Mirror, *batches: Batch, mode: Mode = "incremental") -> None:
    with pytest.raises(ConnectError):
        BatchSource(*batches, BROKEN).sync_into(mirror.folder, mode)


def messages_of(user_id: int, *ids: int, body: str | None = None) -> list[Row]:
    return [{"user_id": user_id, "id": each, "body": body} for each in ids]


def test_row_that_comes_again_stands_once_as_it_came_last(mirror):
    report = BatchSource(
        batch(USERS, messages_of(1, 11, 12, 13, body="old")),
        # One twice in a batch, one that is held, one that only reads as if it were.
        batch([{"id": 2, "name": "Ada"}], messages_of(2, 21, 22, body="old")),
        batch((), messages_of(1, 12, body="newer") + messages_of(1, 14)),
        batch((), messages_of(2, 23, body="old") + messages_of(2, 23, body="newer")),
        batch((), messages_of(2, 11, body="another's"), swept="snapshot"),
    ).sync_into(mirror.folder)
    assert (report.users, report.users_added, report.users_updated) == (3, 2, 1)
    assert (report.messages, report.messages_added, report.messages_updated) == (10, 8, 1)
    held = rows(mirror, "SELECT user_id, id, body FROM messages ORDER BY ALL")
    assert held == [
        (1, 11, "old"),
        (1, 12, "newer"),
        (1, 13, "old"),
        (1, 14, None),
        (2, 11, "another's"),
        (2, 21, "old"),
        (2, 22, "old"),
        (2, 23, "newer"),
    ]
    assert rows(mirror, "SELECT id, name FROM users ORDER BY id") == [(1, None), (2, "Ada")]


def test_full_one_asks_for_no_row_by_its_id(mirror):
    source = BatchSource(
        batch(USERS, messages_of(1, 11, 12), swept="linked", lists={1: "linked", 2: "linked"})
    )
    assert source.sync_into(mirror.folder, "full").deleted == 0
    assert source.asked == []
    assert rows(mirror, SEEN_NOW) == [(11,), (12,)]


def test_what_it_had_read_before_it_was_broken_off_is_not_missed(mirror):
    one = batch(USERS, messages_of(1, 11, 12), swept="snapshot", lists={1: "snapshot"})
    broken_off(mirror, one, mode="full")
    broken_off(mirror, batch((), messages_of(2, 21)))
    last = batch((), messages_of(2, 22), lists={2: "counted"})
    report = BatchSource(last).sync_into(mirror.folder)
    # What the second attempt read of user 2 was no whole list, and so is read again.
    assert (report.resumptions, report.run.messages_added, report.deleted) == (2, 4, 1)
    assert marked(mirror) == ([], [21])
    assert rows(mirror, SEEN_NOW) == [(11,), (12,), (22,)]


def test_list_goes_on_at_its_newest_cursor_alone(mirror):
    broken_off(
        mirror,
        batch(USERS, cursors=[cursor(None, "users"), cursor(1, "a page")]),
        batch(cursors=[cursor(None, "more users"), cursor(1, "the next")], lists={2: "snapshot"}),
    )
    following = BatchSource(batch(lists={1: "snapshot"}))
    following.sync_into(mirror.folder)
    assert following.known is not None
    read = [(each["user_id"], each["state"]) for each in following.known["cursors"]]
    assert sorted(read, key=str) == [(1, "the next"), (None, "more users")]


def test_second_run_notes_what_it_missed_of_the_first(mirror):
    lists = {1: "snapshot", 2: "snapshot"}
    BatchSource(
        batch(USERS, messages_of(1, 11, 12), swept="snapshot", lists=lists)  # type: ignore[arg-type]
    ).sync_into(mirror.folder)
    BatchSource(
        batch(USERS, messages_of(1, 11, 13), swept="snapshot", lists=lists)  # type: ignore[arg-type]
    ).sync_into(mirror.folder, "full")
    assert marked(mirror) == ([], [12])
    assert rows(mirror, "SELECT id FROM messages ORDER BY id") == [(11,), (12,), (13,)]


def test_file_that_cannot_be_written_is_named_and_left_to_the_next_sync(mirror, monkeypatch):
    def misnamed(table: str, sequence: int, number: int) -> str:
        name = file_name(table, sequence, number)
        return f"missing/{name}" if table == "messages" else name

    monkeypatch.setattr(publish, "file_name", misnamed)
    with pytest.raises(MirrorError, match="messages-0000"):
        BatchSource(batch(USERS, messages_of(1, 11, 12), swept="snapshot")).sync_into(mirror.folder)
    with pytest.raises(MirrorError, match="nothing"):
        rows(mirror, "FROM messages")
    assert list((mirror.folder / "published").iterdir()) == []
    monkeypatch.undo()
    BatchSource(batch(USERS)).sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM messages ORDER BY id") == [(11,), (12,)]
