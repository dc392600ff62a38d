"""What a resumed run takes over from its beginning, and what it reads once more."""

from datetime import UTC, datetime, timedelta

import pytest

from backread import ConnectError
from helpers.mirrors import BatchSource, batch, cursor, ended, marked, rows

pytest.importorskip("duckdb")

from backread.mirror import Mirror
from backread.mirror.sync import runs

BROKEN = ConnectError("the connection broke")


def held(mirror: Mirror) -> None:
    """A first run: two users with two messages each."""
    BatchSource(
        batch(
            [{"id": 1}, {"id": 2}],
            [{"user_id": user, "id": user * 10 + each} for user in (1, 2) for each in (1, 2)],
            swept="snapshot",
            lists={1: "snapshot", 2: "snapshot"},
        )
    ).sync_into(mirror.folder)


def broken_off(mirror: Mirror, source: BatchSource, mode: str = "incremental") -> None:
    with pytest.raises(ConnectError):
        source.sync_into(mirror.folder, mode)  # type: ignore[arg-type]


def test_lists_that_the_run_has_read_are_not_read_again_however_long_ago(mirror):
    now = datetime.now(UTC)
    broken_off(
        mirror,
        BatchSource(
            batch([{"id": 1}, {"id": 2}]),
            batch(lists={1: "snapshot"}, checked_at=now - timedelta(days=25)),
            batch(lists={2: "snapshot"}, checked_at=now - timedelta(hours=23)),
            BROKEN,
        ),
    )
    following = BatchSource(batch([{"id": 1}, {"id": 2}], swept="snapshot"))
    assert following.sync_into(mirror.folder).resumed
    assert following.done == [1, 2]


def test_half_of_a_list_says_nothing_about_a_run_that_is_resumed(mirror):
    held(mirror)
    # The first attempt sees messages 11 and 12, but not the end of their list.
    first = batch([{"id": 1}, {"id": 2}], [{"user_id": 1, "id": 11}, {"user_id": 1, "id": 12}])
    broken_off(mirror, BatchSource(first, BROKEN), "full")
    # Before it goes on, user 2 and message 12 go.
    report = BatchSource(
        batch(
            [{"id": 1}],
            [{"user_id": 1, "id": 11}],
            swept="snapshot",
            lists={1: "snapshot"},
        )
    ).sync_into(mirror.folder)
    assert (report.mode, report.resumed) == ("full", True)
    assert marked(mirror) == ([2], [12, 21, 22])
    assert report.deleted == 4


def test_messages_of_lists_that_had_ended_stay_seen(mirror):
    held(mirror)
    first = batch(
        [{"id": 1}, {"id": 2}],
        [{"user_id": 1, "id": 11}],
        [{"resource": "messages", "user_id": 1, "id": 12}],
        lists={1: "snapshot"},
    )
    broken_off(mirror, BatchSource(first, BROKEN), "full")
    second = BatchSource(
        batch(
            [{"id": 1}, {"id": 2}],
            [{"user_id": 2, "id": 21}, {"user_id": 2, "id": 22}],
            swept="snapshot",
            lists={2: "snapshot"},
        )
    )
    assert second.sync_into(mirror.folder).deleted == 0
    assert second.done == [1]
    assert rows(mirror, "SELECT state, resumptions FROM runs WHERE run_id = 2") == [("finished", 1)]


def test_finished_sweep_of_the_users_is_not_repeated(mirror):
    users = [{"id": 1, "updated_at": datetime(2026, 3, 1, tzinfo=UTC)}, {"id": 2}]
    misfit = {"resource": "users", "user_id": 3, "id": 3}
    broken_off(mirror, BatchSource(batch(users, (), [misfit], swept="linked"), BROKEN), "full")
    second = BatchSource(batch(lists={1: "snapshot", 2: "snapshot", 3: "snapshot"}))
    report = second.sync_into(mirror.folder)
    assert report.certificate == "linked"
    assert second.known is not None
    # The user who does not fit has a list of messages like any other.
    assert sorted(second.known["users"], key=lambda each: each["id"]) == [
        {"id": 1, "updated_at": datetime(2026, 3, 1, tzinfo=UTC), "online_at": None},
        {"id": 2, "updated_at": None, "online_at": None},
        {"id": 3, "updated_at": None, "online_at": None},
    ]
    # They were seen, although the sync that finished the run did not show them.
    assert report.deleted == 0
    newest = "SELECT count(*) FROM users, runs WHERE last_seen_at = ended_at"
    assert rows(mirror, newest) == [(2,)]


@pytest.mark.parametrize(("requests", "again"), [(24, False), (25, True)])
def test_users_are_swept_again_an_hour_later_if_that_costs_little(
    mirror, monkeypatch, requests, again
):
    batches = [batch([{"id": 1}], swept="snapshot"), *[batch([{"id": 1}])] * (requests - 2)]
    broken_off(mirror, BatchSource(*batches, BROKEN))
    monkeypatch.setattr(runs, "KILLED_LONG_AGO", timedelta(0))
    second = BatchSource(batch([{"id": 2}], swept="linked"))
    second.sync_into(mirror.folder)
    assert second.known is not None
    assert (second.known["users"] == []) is again


def test_first_run_that_is_killed_twice_does_not_sweep_the_users_each_time(mirror):
    batches = [batch([{"id": 1}], swept="snapshot"), *[batch([{"id": 1}])] * 30]
    broken_off(mirror, BatchSource(*batches, BROKEN))
    for _ in range(2):
        again = BatchSource(batch([{"id": 1}]), BROKEN)
        broken_off(mirror, again)
        assert rows(mirror, "SELECT state FROM runs") == [("partial",)]
        assert again.known is not None
        assert [each["id"] for each in again.known["users"]] == [1]


def test_half_read_lists_go_on_at_their_cursor(mirror):
    broken_off(
        mirror,
        BatchSource(
            batch([{"id": 1}], cursors=[cursor(None, "first page of users")]),
            batch([{"id": 2}], cursors=[cursor(None, "second page of users")]),
            batch(
                messages=[{"user_id": 1, "id": 11}],
                cursors=[cursor(1, "first page"), cursor(2, "its first")],
            ),
            batch(
                messages=[{"user_id": 1, "id": 12}, {"user_id": 2, "id": 21}],
                cursors=[cursor(1, "second page"), cursor(2, "its second")],
                lists={2: "counted"},
            ),
            BROKEN,
        ),
    )
    second = BatchSource(
        batch([{"id": 3}], swept="linked", lists={1: "linked"}),
    )
    second.sync_into(mirror.folder)
    assert second.known is not None
    assert second.done == [2]
    read = {each["user_id"]: each["state"] for each in second.known["cursors"]}
    assert read == {None: "second page of users", 1: "second page"}
    held = [(each["user_id"], each["id"]) for each in second.known["held"]]
    assert sorted(held, key=str) == [(1, 11), (1, 12), (None, 1), (None, 2)]
    # A run that has ended leaves nothing half-read.
    third = BatchSource()
    third.sync_into(mirror.folder)
    assert third.known is not None
    assert (third.known["cursors"], third.known["held"], third.done) == ([], [], [])


def test_cursor_ends_with_its_list_of_users(mirror):
    broken_off(
        mirror,
        BatchSource(
            batch([{"id": 1}], cursors=[cursor(None, "page")]),
            batch([{"id": 2}], swept="linked"),
            BROKEN,
        ),
    )
    second = BatchSource()
    second.sync_into(mirror.folder)
    assert second.known is not None
    assert (second.known["cursors"], second.known["held"]) == ([], [])
    assert sorted(each["id"] for each in second.known["users"]) == [1, 2]


def test_cursor_of_last_month_is_a_place_to_go_on(mirror):
    held(mirror)
    old = datetime.now(UTC) - timedelta(days=31)
    first = batch(
        [{"id": 1}, {"id": 2}],
        [{"user_id": 1, "id": 11}],
        cursors=[cursor(None, "users", old), cursor(1, "messages", old)],
    )
    broken_off(mirror, BatchSource(first, BROKEN), "full")
    second = BatchSource(batch(swept="snapshot", lists={1: "snapshot"}))
    # What the first attempt saw counts: users 1 and 2, and message 11.
    assert second.sync_into(mirror.folder).deleted == 1
    assert second.known is not None
    assert len(second.known["cursors"]) == 2
    assert marked(mirror) == ([], [12])


def test_full_sync_reads_whole_what_an_incremental_one_asked_at_its_end(mirror):
    held(mirror)
    whole, end = ended(1, "linked"), ended(2, "counted", kind="end")
    first = batch(
        [{"id": 1}, {"id": 2}],
        [{"user_id": 1, "id": 11}, {"user_id": 1, "id": 12}, {"user_id": 2, "id": 22}],
        swept="snapshot",
        lists=[whole, end],
        cursors=[cursor(3, "at its growing end")],
    )
    broken_off(mirror, BatchSource(first, BROKEN))
    second = BatchSource(batch(messages=[{"user_id": 2, "id": 21}], lists={2: "snapshot"}))
    report = second.sync_into(mirror.folder, "full")
    assert second.done == [1]
    assert second.known is not None
    assert [each["user_id"] for each in second.known["lists"]] == [2]
    assert second.known["cursors"] == []
    assert (report.mode, report.run.lists_by_kind, report.deleted) == ("full", {"whole": 2}, 1)
    assert report.lists_by_kind == {"whole": 1}
    assert marked(mirror) == ([], [22])


def test_list_that_is_read_twice_in_a_run_stands_once(mirror):
    end = ended(1, "counted", kind="end")
    broken_off(mirror, BatchSource(batch([{"id": 1}]), batch(lists=[end]), BROKEN))
    following = BatchSource(batch([{"id": 1}], swept="snapshot", lists={1: "snapshot"}))
    report = following.sync_into(mirror.folder, "full")
    assert report.lists_by_certificate == {"snapshot": 1}
    assert rows(mirror, "SELECT user_id, run_id, certificate FROM lists") == [(1, 1, "snapshot")]


def test_run_keeps_what_stopped_it_and_all_it_cost(mirror):
    broken_off(mirror, BatchSource(batch([{"id": 1}]), batch([{"id": 2}]), BROKEN))
    broken_off(mirror, BatchSource(BROKEN))
    report = BatchSource(batch([{"id": 3}], swept="linked")).sync_into(mirror.folder)
    assert (report.resumptions, report.resumed, report.run.requests) == (2, True, 3 + 1 + 2)
    assert report.requests == 2
    assert report.error == "ConnectError: the connection broke"
    assert rows(mirror, "SELECT resumptions, error, requests FROM runs") == [
        (2, "ConnectError: the connection broke", 6)
    ]
