"""A sync within a budget or a deadline: it publishes what it read, and the next one continues."""

from datetime import UTC, datetime, timedelta

import pytest

from backread import ConnectError, DeadlineExceededError, MirrorError
from backread.testing import Fault, MockServer, World
from helpers.mirrors import Batch, BatchSource, batch, ended, half_read, marked, rows

BROKEN = ConnectError("the connection broke")


USERS = [{"id": user_id} for user_id in (1, 2, 3)]
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
    for batches in ([read(1, swept=True), BROKEN], [BROKEN]):
        with pytest.raises(ConnectError):
            night(*batches).sync_into(mirror.folder)
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
    assert report.partial
    assert report.users == 30
    assert report.error is not None
    assert report.error.startswith(f"RateLimitError: GET {server.url}/external/users/")
    assert rows(mirror, "SELECT error FROM runs") == [(report.error,)]


@pytest.mark.parametrize("publish", [True, False])
def test_sync_that_ends_at_the_deadline_publishes_what_it_has_if_told_so(mirror, publish):
    late = DeadlineExceededError("the deadline of 1 s has passed")
    with pytest.raises(DeadlineExceededError):
        night(read(1, swept=True), late).sync_into(mirror.folder, publish=publish)
    if not publish:
        with pytest.raises(MirrorError, match="nothing is published"):
            mirror.sql("SELECT 1")
        return
    assert rows(mirror, "SELECT id FROM messages") == [(11,)]
    assert rows(mirror, "SELECT state, error, requests FROM runs") == [
        ("partial", "DeadlineExceededError: the deadline of 1 s has passed", 2)
    ]


def test_unpublished_runs_are_published_by_a_later_sync(mirror):
    night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder)
    more = batch(USERS, [{"user_id": 1, "id": 12}], swept="snapshot", lists={1: "snapshot"})
    report = night(more, ended_early=False).sync_into(mirror.folder, publish=False)
    assert not report.published
    assert rows(mirror, "SELECT count(*) FROM messages") == [(3,)]
    with pytest.raises(ConnectError):
        night(BROKEN).sync_into(mirror.folder)
    assert rows(mirror, "SELECT count(*) FROM messages") == [(4,)]
