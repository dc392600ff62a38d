"""Runs whose budget is used up: published as they are, and continued by the next sync."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from backread import ConnectError, DeadlineExceededError, MirrorError
from backread.testing import Fault, MockServer, World
from helpers.mirrors import Batch, BatchSource, batch, cursor, ended, marked, rows, sync

pytest.importorskip("duckdb")

from backread.mirror import Mirror
from backread.mirror.sync import synchronize

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


def test_sync_report_counts_one_call_and_its_run_all_calls(mirror):
    reports, seen = [], []
    with MockServer(World(seed=7, users=300, messages_per_user=3)) as server:
        while not reports or reports[-1].partial:
            before = sum(server.counts().values())
            report = sync(mirror, server, max_requests=60, on_progress=seen.append)
            assert report.requests == sum(server.counts().values()) - before <= 60
            assert report.users <= 300
            last = seen[-1]
            assert (last.users, last.messages) == (report.users, report.messages)
            assert (last.requests, last.run_requests) == (report.requests, report.run.requests)
            reports.append(report)
    run = report.run
    for name in ("requests", "users", "users_added", "messages", "messages_added", "seconds"):
        assert sum(getattr(each, name) for each in reports) == pytest.approx(getattr(run, name))
    assert (run.users_added, run.messages_added) == (300, 900)
    assert sum((Counter(each.lists_by_kind) for each in reports), Counter()) == {"whole": 300}
    assert run.lists_by_kind == {"whole": 300}
    assert run.lists_by_certificate == {"snapshot": 300}
    assert all(earlier.ended_at < later.started_at for earlier, later in pairwise(reports))
    assert run.started_at == reports[0].started_at
    assert run.requests > 300
    assert [each.resumed for each in reports] == [False] + [True] * (len(reports) - 1)
    assert rows(mirror, "SELECT requests, users FROM runs") == [(run.requests, run.users)]


def test_sync_report_counts_a_list_that_is_tried_again(mirror):
    unread = ended(1, "uncertified", kind="unread", reason="it broke")
    night(batch(USERS, swept="snapshot", lists=[unread])).sync_into(mirror.folder)
    report = night(batch(lists=[unread, ended(2)])).sync_into(mirror.folder)
    assert report.lists_by_kind == {"unread": 1, "whole": 1}
    assert (report.unread_users, report.users, report.run.users) == ((1,), 0, 3)


@pytest.mark.long
def test_nights_of_a_small_budget_add_up_to_one_run(tmp_path):
    technical = "first_seen_at, last_seen_at, changed_at"
    content = f"SELECT COLUMNS(* EXCLUDE ({technical})) FROM {{}} ORDER BY ALL"
    with MockServer(World(seed=7, users=600, messages_per_user=(0, 120))) as server:
        whole = Mirror(tmp_path / "whole")
        one = sync(whole, server)
        nightly = Mirror(tmp_path / "nightly")
        read = [0]
        for _ in range(60):
            report = sync(nightly, server, max_requests=20)
            assert (report.run_id, report.requests <= 20) == (1, True)
            read += rows(nightly, "SELECT count(*) FROM messages")[0]
            if not report.partial:
                break
        assert report.run.requests <= 1.05 * one.requests
        assert (report.lists_left, report.lists_never_read) == (None, None)
        for table in ("users", "messages"):
            assert rows(nightly, content.format(table)) == rows(whole, content.format(table))
    assert read == sorted(read)


def test_budgets_reach_both_phases(mirror):
    linked = batch(
        USERS, [{"user_id": 1, "id": 11}], swept="linked", lists={1: "linked", 2: "snapshot"}
    )
    night(linked, ended_early=False).sync_into(mirror.folder)
    source = night(batch(USERS[:2], swept="linked", lists={2: "snapshot"}), ended_early=False)
    source.sync_into(mirror.folder, "full", max_requests=10, max_seconds=100.0)
    (requests, seconds), (left, seconds_left) = source.budgets
    assert (requests, seconds, left) == (10, 100.0, 8)
    assert seconds_left is not None
    assert 0 < seconds_left < 100


def test_nothing_is_deleted_before_the_run_is_at_its_end(mirror):
    night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder)
    gone = batch(USERS[:2], swept="snapshot", lists={1: "snapshot"})
    assert night(gone).sync_into(mirror.folder, "full").deleted == 0
    assert marked(mirror) == ([], [])
    last = night(batch(lists={2: "snapshot"}), ended_early=False).sync_into(mirror.folder)
    assert (last.mode, last.deleted) == ("full", 4)
    assert marked(mirror) == ([3], [11, 21, 31])


def test_conversation_that_was_partly_read_is_not_complete(mirror):
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    talk = [
        {"user_id": user_id, "id": user_id * 10, "sender_type": "user", "created_at": at}
        for user_id in (1, 2)
    ] + [
        {
            "user_id": user_id,
            "id": user_id * 10 + 1,
            "sender_type": "operator",
            "created_at": at + timedelta(minutes=1),
        }
        for user_id in (1, 2)
    ]
    part = batch(USERS, talk, swept="snapshot", lists={1: "snapshot"}, cursors=[cursor(2, "page")])
    night(part).sync_into(mirror.folder)
    query = "SELECT user_id, complete, first_response_seconds FROM conversations ORDER BY 1"
    assert rows(mirror, query) == [(1, True, 60.0), (2, False, None), (3, False, None)]
    kinds = dict(rows(mirror, "SELECT user_id, kind FROM lists"))
    assert kinds == {1: "whole", 2: "partial"}
    night(read(2, 3), ended_early=False).sync_into(mirror.folder)
    assert [complete for _, complete, _ in rows(mirror, query)] == [True, True, True]


@pytest.mark.parametrize(
    ("rows_read", "total", "complete"), [(1, 3, False), (1, None, False), (1, 1, True)]
)
def test_conversation_whose_list_is_short_is_not_complete(mirror, rows_read, total, complete):
    """A service that stops before its total, or whose messages are not found."""
    short = ended(1, "uncertified", rows=rows_read, total=total)
    messages = [{"user_id": 1, "id": 11, "sender_type": "user"}]
    night(batch(USERS[:1], messages, swept="snapshot", lists=[short])).sync_into(mirror.folder)
    assert rows(mirror, "SELECT complete FROM conversations") == [(complete,)]


def test_first_run_that_was_broken_off_is_published_by_the_next_sync(mirror):
    with pytest.raises(ConnectError):
        night(read(1, swept=True), BROKEN).sync_into(mirror.folder)
    with pytest.raises(ConnectError):
        night(BROKEN).sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM messages") == [(11,)]
    [(_, state, left)] = rows(mirror, STATES)
    assert (state, left) == ("partial", 2)


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


def test_a_run_that_its_budget_alone_ends_names_no_failure_of_before(mirror):
    night(read(1, swept=True)).sync_into(mirror.folder)
    with pytest.raises(ConnectError):
        night(BROKEN).sync_into(mirror.folder)
    assert night(read(2)).sync_into(mirror.folder).error is None


def test_sync_that_ends_at_the_deadline_publishes_what_it_has(mirror):
    late = DeadlineExceededError("the deadline of 1 s has passed")
    with pytest.raises(DeadlineExceededError):
        night(read(1, swept=True), late).sync_into(mirror.folder)
    assert rows(mirror, "SELECT id FROM messages") == [(11,)]
    assert rows(mirror, "SELECT state, error FROM runs") == [
        ("partial", "DeadlineExceededError: the deadline of 1 s has passed")
    ]


def test_sync_that_ends_at_the_deadline_counts_its_cost_once(mirror):
    late = DeadlineExceededError("the deadline of 1 s has passed")
    with pytest.raises(DeadlineExceededError):
        night(read(1, swept=True), late).sync_into(mirror.folder)
    assert rows(mirror, "SELECT requests FROM runs") == [(2,)]


def test_sync_that_ends_at_the_deadline_publishes_nothing_if_told_so(mirror):
    late = DeadlineExceededError("the deadline of 1 s has passed")
    with pytest.raises(DeadlineExceededError):
        night(read(1, swept=True), late).sync_into(mirror.folder, publish=False)
    with pytest.raises(MirrorError, match="nothing is published"):
        mirror.sql("SELECT 1")


def test_the_progress_of_a_killed_run_outlives_a_run_over_given_users(mirror, monkeypatch):
    monkeypatch.setattr(synchronize, "SECONDS_BETWEEN_FILES", 0.0)
    given = batch([{"id": 3}], [{"user_id": 3, "id": 31}], lists={3: "snapshot"})
    with pytest.raises(ConnectError):
        night(read(1, swept=True), BROKEN).sync_into(mirror.folder)
    said = mirror.unfinished_run
    assert said is not None
    BatchSource(given).sync_into(mirror.folder, users=(3,))
    assert mirror.unfinished_run == said
    with pytest.raises(ConnectError):
        BatchSource(given, BROKEN).sync_into(mirror.folder, users=(3,))
    assert mirror.unfinished_run == said
    night(read(2, 3), ended_early=False).sync_into(mirror.folder)
    assert mirror.unfinished_run is None


def test_a_run_whose_budget_is_passed_asks_for_nothing_more(mirror):
    night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder)
    source = BatchSource(batch(USERS[:2], swept="linked"))
    source.sync_into(mirror.folder, mode="full", max_requests=1, max_seconds=1e-9)
    assert source.budgets == [(1, 1e-9), (0, 0.0)]


def test_given_users_are_read_beside_an_unfinished_run(mirror):
    night(read(1, swept=True)).sync_into(mirror.folder)
    given = BatchSource(
        batch([{"id": 3, "name": "Ada"}], [{"user_id": 3, "id": 31}], lists={3: "snapshot"})
    )
    report = given.sync_into(mirror.folder, users=(3, 3))
    assert given.users == [3]
    assert given.known is not None
    assert given.known["cursors"] == given.known["done"] == []
    assert (report.run_id, report.state, report.users_updated) == (2, "finished", 1)
    assert rows(mirror, "SELECT name FROM users WHERE id = 3") == [("Ada",)]
    following = night(read(2, 3), ended_early=False)
    report = following.sync_into(mirror.folder)
    assert (report.run_id, report.state) == (1, "finished")
    assert following.done == [1]
    assert rows(mirror, "SELECT count(*) FROM users WHERE deleted_at IS NOT NULL") == [(0,)]


def test_given_user_whom_the_service_does_not_know_is_deleted(mirror):
    night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder)
    gone = {"resource": "users", "user_id": 2, "id": 2}
    assert BatchSource(batch(gone=[gone])).sync_into(mirror.folder, users=(2,)).deleted == 2
    assert marked(mirror) == ([2], [21])


def test_unpublished_runs_are_published_by_a_later_sync(mirror):
    night(read(1, 2, 3, swept=True), ended_early=False).sync_into(mirror.folder)
    more = batch(USERS, [{"user_id": 1, "id": 12}], swept="snapshot", lists={1: "snapshot"})
    report = night(more, ended_early=False).sync_into(mirror.folder, publish=False)
    assert not report.published
    assert rows(mirror, "SELECT count(*) FROM messages") == [(3,)]
    with pytest.raises(ConnectError):
        night(BROKEN).sync_into(mirror.folder)
    assert rows(mirror, "SELECT count(*) FROM messages") == [(4,)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_requests": 0}, "max_requests must be 1 or more"),
        ({"max_seconds": 0}, "max_seconds must be more than 0"),
        ({"users": []}, "users is empty"),
        ({"users": [-1]}, "0 or more"),
        ({"users": [1], "mode": "full"}, "mode='full'"),
        ({"max_requests": 10**30}, "max_requests must be 1 to"),
        ({"max_seconds": float("inf")}, "None for no limit, not inf"),
        ({"max_staleness": 1e300}, "None for no limit, not 1e"),
    ],
)
def test_odd_budgets_are_refused(mirror, backread_client, options, said):
    with pytest.raises(ValueError, match=said):
        mirror.sync(backread_client, **options)
    assert not mirror.folder.exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_requests": "5"}, "max_requests must be an int, not str"),
        ({"users": ["42"]}, r"users\[0\] must be an int, not str"),
        ({"publish": "no"}, "publish must be True or False, not str"),
        ({"max_request": 5}, "did you mean max_requests"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(mirror, backread_client, options, said):
    with pytest.raises(TypeError, match=said):
        mirror.sync(backread_client, **options)
    assert not mirror.folder.exists()


@pytest.mark.parametrize(
    ("limit", "taken"),
    [("2GB", 2_000_000_000), ("2g", 2_000_000_000), ("512 MiB", 2**29), (10**9, 10**9)],
)
def test_memory_limits(tmp_path, limit, taken):
    assert Mirror(tmp_path, memory_limit=limit) == Mirror(tmp_path)
    from backread.mirror.store.memory import read_memory_limit

    assert read_memory_limit(limit) == taken


@pytest.mark.parametrize("limit", ["", "2 apples", "10MB", 1, -5, "nanGB"])
def test_odd_memory_limits_are_refused(tmp_path, limit):
    with pytest.raises(ValueError, match="memory_limit"):
        Mirror(tmp_path, memory_limit=limit)
