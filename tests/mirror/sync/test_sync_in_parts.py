"""Runs in parts, ended by a kill, an error or a budget and resumed; syncs of given users."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest

from backread import ConnectError, DeadlineExceededError, MirrorError
from backread.mirror import Mirror, SyncProgress
from backread.mirror.sync import synchronize
from backread.mirror.sync.report import Mode
from backread.testing import Dialect, Fault, MockServer, World
from helpers import CHILDREN
from helpers.doc_pages import IN_CHECKOUT, ROOT
from helpers.mirrors import Batch, BatchSource, batch, ended, half_read, marked, missed, rows, sync
from helpers.python_process import environment

CHILD = CHILDREN / "sync_stepwise.py"


@pytest.fixture
def server() -> Iterator[MockServer]:
    """About ten commits' worth of messages."""
    with MockServer(World(seed=5, users=120, messages_per_user=(150, 200))) as running:
        yield running


def holds_exactly(mirror: Mirror, world: World) -> bool:
    """Whether it has the service's rows, and no others."""
    counts = "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM messages)"
    return missed(mirror, world) == [] and rows(mirror, counts) == [
        (len(world.user_ids()), world.total_messages)
    ]


def test_sync_killed_three_times_then_holds_exactly_the_rows(mirror, server, tmp_path):
    whole = sync(Mirror(tmp_path / "whole"), server).requests
    server.forget()
    committed = 0
    for commits, delay in ((2, 0.0), (3, 0.004), (4, 0.012)):
        # It tells its progress after each commit, and waits for a line; see sync_stepwise.py.
        with subprocess.Popen(
            [sys.executable, str(CHILD), str(mirror.folder), "incremental"],
            env=environment(server),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(commits):
                phase, *_, requests = json.loads(process.stdout.readline())
                assert phase == "reading"
                process.stdin.write("\n")
                process.stdin.flush()
            # Each run goes on from what the one before it had committed.
            assert requests >= committed
            committed = requests
            # Somewhere in the reading, the merging or the commit of the next batch.
            time.sleep(delay)
            process.kill()
        assert process.returncode != 0
    report = sync(mirror, server)
    assert (report.run_id, report.resumed) == (1, True)
    assert report.run.messages_added == server.world.total_messages
    # A kill costs the responses that were not committed: a batch, and what was under way.
    assert sum(server.counts().values()) <= whole + 3 * (64 + 20)
    assert holds_exactly(mirror, server.world)
    assert rows(mirror, "SELECT state, resumptions FROM runs") == [("finished", 3)]
    again = sync(mirror, server)
    assert (again.run_id, again.resumed, again.messages_added) == (2, False, 0)


@pytest.mark.long
@pytest.mark.skipif(not IN_CHECKOUT, reason="the scripts are in the checkout only")
def test_sync_after_30_kills_equals_a_fresh_sync():
    script = str(ROOT / "benches" / "mirror_kills.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=560)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills 30," in done.stdout
    assert "holds what a fresh mirror holds: yes" in done.stdout


@pytest.mark.parametrize("error", [ZeroDivisionError, ConnectError])
def test_sync_that_raises_keeps_what_it_read(mirror, server, error):
    def tell(now: SyncProgress) -> None:
        if now.messages and error is ZeroDivisionError:
            raise ZeroDivisionError
        if now.messages:
            server.stop()

    with server.client(max_retries=0) as client, pytest.raises(error):
        mirror.sync(client, on_progress=tell)
    with MockServer(server.world) as other:
        assert sync(mirror, other).resumed
    assert holds_exactly(mirror, server.world)


# --- after an error -------------------------------------------------------------------------------


BROKEN = ConnectError("the connection broke")


TWO = [{"id": 1}, {"id": 2}]
OF_1 = [{"user_id": 1, "id": each} for each in (11, 12)]
OF_2 = [{"user_id": 2, "id": each} for each in (21, 22)]
BOTH: Any = {1: "snapshot", 2: "snapshot"}


def held(mirror: Mirror) -> None:
    """A first run: two users with two messages each."""
    first = batch(TWO, OF_1 + OF_2, swept="snapshot", lists=BOTH)
    BatchSource(first).sync_into(mirror.folder)


def broken_off(mirror: Mirror, *batches: Batch, mode: Mode = "incremental", **options: Any) -> None:
    with pytest.raises(ConnectError):
        BatchSource(*batches, BROKEN).sync_into(mirror.folder, mode, **options)


def test_resumed_full_run_marks_what_only_an_unfinished_read_had_shown(mirror):
    held(mirror)
    # The first attempt sees messages 11 and 12, but not the end of their list.
    broken_off(mirror, batch(TWO, OF_1), mode="full")
    # Before it goes on, user 2 and message 12 go.
    rest = batch(TWO[:1], OF_1[:1], swept="snapshot", lists={1: "snapshot"})
    report = BatchSource(rest).sync_into(mirror.folder)
    assert (report.mode, report.resumed, report.deleted) == ("full", True, 4)
    assert marked(mirror) == ([2], [12, 21, 22])


def test_messages_of_lists_that_had_ended_stay_seen(mirror):
    held(mirror)
    misfit = {"resource": "messages", "user_id": 1, "id": 12}
    broken_off(mirror, batch(TWO, OF_1[:1], [misfit], lists={1: "snapshot"}), mode="full")
    second = BatchSource(batch(TWO, OF_2, swept="snapshot", lists={2: "snapshot"}))
    assert second.sync_into(mirror.folder).deleted == 0
    assert second.done == [1]
    assert rows(mirror, "SELECT state, resumptions FROM runs WHERE run_id = 2") == [("finished", 1)]


def test_finished_list_of_users_is_not_read_again(mirror):
    moved = {"updated_at": datetime(2026, 3, 1, tzinfo=UTC)}
    misfit = {"resource": "users", "user_id": 3, "id": 3}
    first = batch([TWO[0] | moved], half_read=[half_read(None, "page")])
    broken_off(mirror, first, batch(TWO[1:], (), [misfit], swept="linked"), mode="full")
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
        batch(TWO[:1], half_read=[half_read(None, "first page of users")]),
        batch(TWO[1:], half_read=[half_read(None, "second page of users")]),
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
    broken_off(mirror, batch(TWO, [*OF_1, OF_2[1]], swept="snapshot", lists=lists, half_read=half))
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
    broken_off(mirror, batch(TWO[:1]), batch(TWO[1:]))
    broken_off(mirror)
    report = BatchSource(batch([{"id": 3}], swept="linked")).sync_into(mirror.folder)
    assert (report.resumptions, report.resumed, report.run.requests) == (2, True, 3 + 1 + 2)
    assert (report.requests, report.error) == (2, "ConnectError: the connection broke")
    kept = rows(mirror, "SELECT resumptions, error, requests FROM runs")
    assert kept == [(2, report.error, 6)]


def test_first_run_does_not_count_what_it_read_before_it_was_broken_off_as_missed(mirror):
    broken_off(mirror, batch(TWO, OF_1, swept="snapshot", lists={1: "snapshot"}), mode="full")
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


# --- given users ----------------------------------------------------------------------------------


USERS = [{"id": user_id} for user_id in (1, 2, 3)]
MESSAGES = [{"user_id": user_id, "id": user_id * 10 + 1} for user_id in (1, 2, 3)]
ALL = batch(USERS, MESSAGES, swept="snapshot", lists={1: "snapshot", 2: "snapshot", 3: "snapshot"})
HALF = batch(USERS, MESSAGES[:1], swept="snapshot", lists={1: "snapshot"})


def test_given_users_are_read_beside_an_unfinished_run(mirror, monkeypatch):
    monkeypatch.setattr(synchronize, "SECONDS_BETWEEN_FILES", 0.0)
    broken_off(mirror, HALF)
    unfinished = mirror.unfinished_run
    assert unfinished is not None
    named = batch([{"id": 3, "name": "Ada"}], MESSAGES[2:], lists={3: "snapshot"})
    given = BatchSource(named)
    report = given.sync_into(mirror.folder, users=(3, 3))
    assert given.users == [3]
    assert given.known is not None
    assert given.known["half_read"] == given.known["done"] == []
    assert (report.run_id, report.state, report.users_updated) == (2, "finished", 1)
    assert rows(mirror, "SELECT name FROM users WHERE id = 3") == [("Ada",)]
    broken_off(mirror, named, users=(3,))
    # Its lists are not in the report of the next one.
    report = BatchSource(batch(lists={2: "snapshot"})).sync_into(mirror.folder, users=(2,))
    assert report.lists_by_kind == {"whole": 1}
    assert mirror.unfinished_run == unfinished
    following = BatchSource(batch(messages=MESSAGES[1:], lists={2: "snapshot", 3: "snapshot"}))
    report = following.sync_into(mirror.folder)
    assert (report.run_id, report.state, following.done) == (1, "finished", [1])
    assert mirror.unfinished_run is None
    assert marked(mirror) == ([], [])


@pytest.mark.parametrize("end", ["finished", "partial", "broken off"])
def test_given_user_whom_the_service_does_not_know_is_deleted_however_the_run_ends(mirror, end):
    BatchSource(ALL).sync_into(mirror.folder)
    gone = batch(gone=[{"resource": "users", "user_id": 2, "id": 2}])
    if end == "broken off":
        broken_off(mirror, gone, users=(2, 3))
        BatchSource(batch(USERS[:1])).sync_into(mirror.folder, users=(1,))
    else:
        source = BatchSource(gone, ended_early=end == "partial")
        report = source.sync_into(mirror.folder, users=(2, 3))
        assert (report.deleted, report.unknown_users) == (2, (2,))
    assert marked(mirror) == ([2], [21])


def known_states(mirror: Mirror, mode: Mode = "incremental") -> dict[int, str | None]:
    """What the mirror hands to the next run as known of each list."""
    following = BatchSource(ALL)
    assert following.sync_into(mirror.folder, mode).deleted == 0
    assert following.known is not None
    return {each["user_id"]: each["state"] for each in following.known["lists"]}


@pytest.mark.parametrize(("kind", "state"), [("whole", None), ("end", "{}")])
def test_whole_list_that_a_run_of_given_users_read_is_read_again(mirror, kind, state):
    """It records nothing as missed; by what it knows, only the end of the list would be read."""
    BatchSource(ALL).sync_into(mirror.folder)
    BatchSource(batch(lists=[ended(1, kind=kind)])).sync_into(mirror.folder, users=(1,))
    assert known_states(mirror) == {1: state, 2: "{}", 3: "{}"}


def test_list_whose_rows_a_run_missed_is_read_whole_by_the_next(mirror):
    """Those that a run of given users read meanwhile are not known by its list to the next run."""
    BatchSource(ALL).sync_into(mirror.folder)
    BatchSource(batch(USERS[1:], swept="snapshot"), ended_early=True).sync_into(mirror.folder)
    end = batch(USERS[:1], MESSAGES[:1], lists=[ended(1, kind="end")])
    BatchSource(end).sync_into(mirror.folder, users=(1,))
    rest = batch(messages=MESSAGES[1:], lists={2: "snapshot", 3: "snapshot"})
    BatchSource(rest).sync_into(mirror.folder)
    assert known_states(mirror, "full")[1] is None


def test_deletion_after_a_killed_sync_of_given_users_is_marked_by_the_first_run(mirror):
    broken_off(mirror, read(1), users=(1,), publish=False)
    without = batch(USERS, MESSAGES[1:], swept="snapshot", lists={1: "snapshot"})
    BatchSource(without).sync_into(mirror.folder, "full")
    assert marked(mirror) == ([], [11])


def complete(mirror: Mirror, world: World) -> bool:
    """Whether the mirror shows all messages of the service, and no others, as there."""
    held = rows(mirror, "SELECT user_id, id FROM messages WHERE deleted_at IS NULL ORDER BY ALL")
    there = [(user, each) for user in world.user_ids() for each in world.message_ids(user)]
    return held == sorted(there)


@pytest.mark.parametrize("mode", ["full", "incremental"])
@pytest.mark.parametrize("first", [True, False])
def test_sync_of_given_users_between_two_parts_of_a_run_loses_nothing(mirror, mode, first):
    world = World(seed=11, users=60, messages_per_user=5)
    with MockServer(world) as mock, mock.client(max_concurrency=1) as client:
        if not first:
            mirror.sync(client)
        assert mirror.sync(client, mode=mode, max_requests=30).partial
        assert mirror.sync(client, users=world.user_ids()[:3], max_requests=4).partial
        mirror.sync(client, mode=mode)
        for _ in range(2):
            assert mirror.sync(client, mode="full").deleted == 0
            assert marked(mirror) == ([], [])
            assert complete(mirror, world)


@pytest.mark.parametrize("order", ["id", "newest"])
def test_a_position_before_it_proves_nothing_of_what_was_deleted_meanwhile(mirror, order):
    world = World(seed=5, users=1, messages_per_user=600)
    [user] = world.user_ids()
    dialect = Dialect("documented", order=order)
    with MockServer(world, dialect=dialect) as mock, mock.client(max_concurrency=1) as client:
        mirror.sync(client, mode="full", max_requests=4)
        for (message,) in rows(mirror, "SELECT id FROM messages ORDER BY id LIMIT 20"):
            world.remove_message(user, message)
        mirror.sync(client, users=[user], max_requests=2)
        world.add_messages(user, 20)
        report = mirror.sync(client, mode="full")
        assert complete(mirror, world) or not {"snapshot", "counted"} & {
            *report.lists_by_certificate
        }
        mirror.sync(client, mode="full")
        assert complete(mirror, world)


# --- budgets and deadlines ------------------------------------------------------------------------


STATES = "SELECT run_id, state, lists_left FROM runs ORDER BY run_id"


def night(*batches: Batch | BaseException, ended_early: bool = True) -> BatchSource:
    return BatchSource(*batches, ended_early=ended_early)


def read(*user_ids: int, swept: bool = False) -> Batch:
    """The lists of these users, with a message each."""
    return batch(
        USERS if swept else (),
        [{"user_id": user_id, "id": user_id * 10 + 1} for user_id in user_ids],
        swept="snapshot" if swept else None,
        lists=dict.fromkeys(user_ids, "snapshot"),
    )


def test_what_was_read_is_published_and_the_next_sync_continues_the_run(mirror):
    first = night(read(1, swept=True)).sync_into(mirror.folder, max_requests=2)
    assert (first.state, first.partial, first.run_id) == ("partial", True, 1)
    assert (first.lists_done, first.lists_never_read) == (0, 2)
    assert first.users_swept_at is not None
    assert rows(mirror, "SELECT id FROM messages") == [(11,)]
    second = night(read(2)).sync_into(mirror.folder)
    assert (second.run_id, second.resumed, second.resumptions) == (1, True, 1)
    assert rows(mirror, "SELECT id FROM messages ORDER BY 1") == [(11,), (21,)]
    third = night(read(3), ended_early=False)
    report = third.sync_into(mirror.folder)
    assert (report.state, report.run_id, report.certificate) == ("finished", 1, "snapshot")
    assert third.done == [1, 2]
    assert (report.lists_by_kind, report.messages_added) == ({"whole": 1}, 1)
    assert (report.run.lists_by_kind, report.run.messages_added) == ({"whole": 3}, 3)
    assert night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder).run_id == 2
    assert [state for _, state, _ in rows(mirror, STATES)] == ["finished", "finished"]


def test_budgets_reach_both_phases_and_a_budget_that_is_passed_leaves_nothing(mirror):
    night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder)
    shown = batch(USERS[:2], swept="linked")
    source = night(shown, ended_early=False)
    source.sync_into(mirror.folder, "full", max_requests=10, max_seconds=100.0)
    (requests, seconds), (left, seconds_left) = source.budgets
    assert (requests, seconds, left) == (10, 100.0, 8)
    assert 0 < seconds_left < 100
    source = BatchSource(shown)
    source.sync_into(mirror.folder, mode="full", max_requests=1, max_seconds=1e-9)
    assert source.budgets == [(1, 1e-9), (0, 0.0)]


def test_nothing_is_deleted_before_the_run_is_at_its_end(mirror):
    night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder)
    gone = batch(USERS[:2], swept="snapshot", lists={1: "snapshot"})
    assert night(gone).sync_into(mirror.folder, "full").deleted == 0
    assert marked(mirror) == ([], [])
    last = night(batch(lists={2: "snapshot"}), ended_early=False).sync_into(mirror.folder)
    assert (last.mode, last.deleted) == ("full", 4)
    assert marked(mirror) == ([3], [11, 21, 31])


def test_conversation_is_complete_only_if_its_list_was_read_to_its_end(mirror):
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    first = {"id": 1, "sender_type": "user", "created_at": at}
    asked = [first | {"user_id": each} for each in (1, 2, 3)]
    late = {"id": 2, "sender_type": "operator", "created_at": at + timedelta(minutes=1)}
    talk = [*asked, *(each | late for each in asked)]
    # The list of user 3 ends before its total.
    lists = [ended(1, "uncertified", rows=2, total=2), ended(3, "uncertified", rows=2, total=3)]
    given = batch(USERS, talk, swept="snapshot", lists=lists, half_read=[half_read(2, "page")])
    night(given).sync_into(mirror.folder)
    query = "SELECT user_id, complete, first_response_seconds FROM conversations ORDER BY 1"
    assert rows(mirror, query) == [(1, True, 60.0), (2, False, None), (3, False, None)]
    night(read(2), ended_early=False).sync_into(mirror.folder)
    assert [complete for _, complete, _ in rows(mirror, query)] == [True, True, False]


def test_first_run_that_was_broken_off_is_published_by_the_next_sync(mirror):
    for batches in ([read(1, swept=True)], []):
        broken_off(mirror, *batches)
    assert rows(mirror, "SELECT id FROM messages") == [(11,)]
    assert rows(mirror, STATES) == [(1, "partial", 2)]
    # What its budget alone ends names no failure of before.
    assert night(read(2)).sync_into(mirror.folder).error is None


def test_a_run_says_what_it_could_not_wait_for(mirror):
    with MockServer(World(seed=3, users=30, messages_per_user=2)) as server:
        server.on("messages", user=server.world.user_ids()[20]).fail(
            Fault.status(429, retry_after=3600)
        )
        with server.client() as client:
            report = mirror.sync(client, max_seconds=60)
    assert (report.partial, report.users) == (True, 30)
    assert report.error.startswith(f"RateLimitError: GET {server.url}/external/users/")
    assert rows(mirror, "SELECT error FROM runs") == [(report.error,)]


def test_sync_that_ends_at_the_deadline_publishes_what_it_has_if_told_so(mirror):
    late = DeadlineExceededError("the deadline of 1 s has passed")
    for publish in (False, True):
        with pytest.raises(MirrorError, match="nothing is published"):
            mirror.sql("SELECT 1")
        with pytest.raises(DeadlineExceededError):
            night(read(1, swept=True), late).sync_into(mirror.folder, publish=publish)
    assert rows(mirror, "SELECT id FROM messages") == [(11,)]
    assert rows(mirror, "SELECT state, error, requests FROM runs") == [
        ("partial", "DeadlineExceededError: the deadline of 1 s has passed", 4)
    ]
