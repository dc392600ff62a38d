"""A sync resumes the run that a kill, an error or a budget ended, and reads nothing again."""

import re
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest

from backread import ConnectError
from backread.mirror import Mirror
from backread.mirror.sync.report import Mode
from backread.testing import MockServer, World
from helpers.mirrors import Batch, BatchSource, batch, ended, half_read, marked, rows

BROKEN = ConnectError("the connection broke")


USERS = [{"id": 1}, {"id": 2}]
OF_1 = [{"user_id": 1, "id": each} for each in (11, 12)]
OF_2 = [{"user_id": 2, "id": each} for each in (21, 22)]
BOTH: Any = {1: "snapshot", 2: "snapshot"}


def held(mirror: Mirror) -> None:
    """A first run: two users with two messages each."""
    first = batch(USERS, OF_1 + OF_2, swept="snapshot", lists=BOTH)
    BatchSource(first).sync_into(mirror.folder)


def broken_off(mirror: Mirror, *batches: Batch, mode: Mode = "incremental") -> None:
    with pytest.raises(ConnectError):
        BatchSource(*batches, BROKEN).sync_into(mirror.folder, mode)


def test_resumed_full_run_marks_what_only_an_unfinished_read_had_shown(mirror):
    held(mirror)
    # The first attempt sees messages 11 and 12, but not the end of their list.
    broken_off(mirror, batch(USERS, OF_1), mode="full")
    # Before it goes on, user 2 and message 12 go.
    rest = batch(USERS[:1], OF_1[:1], swept="snapshot", lists={1: "snapshot"})
    report = BatchSource(rest).sync_into(mirror.folder)
    assert (report.mode, report.resumed, report.deleted) == ("full", True, 4)
    assert marked(mirror) == ([2], [12, 21, 22])


def test_messages_of_lists_that_had_ended_stay_seen(mirror):
    held(mirror)
    misfit = {"resource": "messages", "user_id": 1, "id": 12}
    broken_off(mirror, batch(USERS, OF_1[:1], [misfit], lists={1: "snapshot"}), mode="full")
    second = BatchSource(batch(USERS, OF_2, swept="snapshot", lists={2: "snapshot"}))
    assert second.sync_into(mirror.folder).deleted == 0
    assert second.done == [1]
    assert rows(mirror, "SELECT state, resumptions FROM runs WHERE run_id = 2") == [("finished", 1)]


def test_finished_list_of_users_is_not_read_again(mirror):
    moved = {"updated_at": datetime(2026, 3, 1, tzinfo=UTC)}
    misfit = {"resource": "users", "user_id": 3, "id": 3}
    first = batch([USERS[0] | moved], half_read=[half_read(None, "page")])
    broken_off(mirror, first, batch(USERS[1:], (), [misfit], swept="linked"), mode="full")
    second = BatchSource(batch(lists=BOTH | {3: "snapshot"}))
    report = second.sync_into(mirror.folder)
    # They were seen, although the sync that finished the run did not show them.
    assert (report.certificate, report.deleted) == ("linked", 0)
    assert second.known is not None
    assert (second.known["half_read"], second.known["held"]) == ([], [])
    # The user who does not fit has a list of messages like any other.
    nothing = {"updated_at": None, "online_at": None}
    users = [nothing | {"id": 1} | moved, nothing | {"id": 2}, nothing | {"id": 3}]
    assert sorted(second.known["users"], key=lambda each: each["id"]) == users
    newest = "SELECT count(*) FROM users, runs WHERE last_seen_at = ended_at"
    assert rows(mirror, newest) == [(2,)]


def test_half_read_lists_are_read_on_from_their_newest_state(mirror):
    one, two = (half_read(1, "first page"), half_read(2, "its first"))
    one_on, two_on = (half_read(1, "second page"), half_read(2, "its second"))
    broken_off(
        mirror,
        batch(USERS[:1], half_read=[half_read(None, "first page of users")]),
        batch(USERS[1:], half_read=[half_read(None, "second page of users")]),
        batch(messages=OF_1[:1], half_read=[one, two]),
        batch(messages=[OF_1[1], OF_2[0]], half_read=[one_on, two_on], lists={2: "counted"}),
    )
    rest = batch([{"id": 3}], [{"user_id": 1, "id": 13}], swept="linked", lists={1: "linked"})
    second, third = BatchSource(rest), BatchSource()
    second.sync_into(mirror.folder)
    assert second.known is not None
    assert second.done == [2]
    read = {each["user_id"]: each["state"] for each in second.known["half_read"]}
    assert read == {None: "second page of users", 1: "second page"}
    known = [(each["user_id"], each["id"]) for each in second.known["held"]]
    assert sorted(known, key=str) == [(1, 11), (1, 12), (None, 1), (None, 2)]
    # What was read before counts as seen.
    newest = "SELECT id FROM messages, runs WHERE last_seen_at = ended_at ORDER BY 1"
    assert rows(mirror, newest) == [(11,), (12,), (13,), (21,)]
    # A run that has ended leaves nothing half-read.
    third.sync_into(mirror.folder)
    assert third.known is not None
    assert (third.known["half_read"], third.known["held"], third.done) == ([], [], [])


def test_full_sync_reads_whole_what_an_incremental_one_asked_at_its_end(mirror):
    held(mirror)
    lists = [ended(1, "linked"), ended(2, "counted", kind="end")]
    half = [half_read(3, "at its growing end")]
    broken_off(
        mirror, batch(USERS, [*OF_1, OF_2[1]], swept="snapshot", lists=lists, half_read=half)
    )
    second = BatchSource(batch(messages=OF_2[:1], lists={2: "snapshot"}))
    report = second.sync_into(mirror.folder, "full")
    assert second.done == [1]
    assert second.known is not None
    assert [each["user_id"] for each in second.known["lists"]] == [2]
    assert second.known["half_read"] == []
    assert (report.mode, report.run.lists_by_kind, report.deleted) == ("full", {"whole": 2}, 1)
    assert report.lists_by_kind == {"whole": 1}
    assert marked(mirror) == ([], [22])


def test_run_keeps_what_stopped_it_and_all_it_cost(mirror):
    broken_off(mirror, batch(USERS[:1]), batch(USERS[1:]))
    broken_off(mirror)
    report = BatchSource(batch([{"id": 3}], swept="linked")).sync_into(mirror.folder)
    assert (report.resumptions, report.resumed, report.run.requests) == (2, True, 3 + 1 + 2)
    assert (report.requests, report.error) == (2, "ConnectError: the connection broke")
    kept = rows(mirror, "SELECT resumptions, error, requests FROM runs")
    assert kept == [(2, report.error, 6)]


def test_first_run_does_not_count_what_it_read_before_it_was_broken_off_as_missed(mirror):
    broken_off(mirror, batch(USERS, OF_1, swept="snapshot", lists={1: "snapshot"}), mode="full")
    broken_off(mirror, batch(messages=OF_2[:1]))
    report = BatchSource(batch(messages=OF_2[1:], lists={2: "counted"})).sync_into(mirror.folder)
    # What the second attempt read of user 2 was no whole list, and so is read again.
    assert (report.resumptions, report.run.messages_added, report.deleted) == (2, 4, 1)
    assert marked(mirror) == ([], [21])
    newest = "SELECT id FROM messages, runs WHERE last_seen_at = ended_at ORDER BY ALL"
    assert rows(mirror, newest) == [(11,), (12,), (22,)]


@pytest.mark.parametrize("choice", [{"drop_bodies": True}, {}])
def test_private_mirror_remembers_no_hash_of_half_read_rows_and_resumes(tmp_path, choice):
    mirror = Mirror(tmp_path / "chats", **choice)
    states = "SELECT state FROM lists UNION ALL SELECT users_state FROM runs"
    world = World(seed=5, users=100, messages_per_user=(200, 210))
    with MockServer(world) as server, server.client(max_concurrency=1) as client:
        # The first one ends within the list of users, the second within a list of messages.
        for requests in (1, 6):
            assert mirror.sync(client, max_requests=requests).partial
            with duckdb.connect(str(mirror.folder / "mirror.duckdb"), read_only=True) as opened:
                hashes = re.findall(r'"content":(\d+|null)', str(opened.sql(states).fetchall()))
            assert hashes
            assert any(each != "null" for each in hashes) is not bool(choice)
        mirror.sync(client)
    held = rows(mirror, "SELECT user_id, id FROM messages ORDER BY ALL")
    assert held == sorted((each, of) for each in world.user_ids() for of in world.message_ids(each))
    assert rows(mirror, "SELECT count(*) FROM users") == [(100,)]
