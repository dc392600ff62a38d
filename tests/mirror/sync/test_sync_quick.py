"""A quick run: when it skips lists, what its audit finds, and what a miss does."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from backread.mirror import Mirror, SyncReport
from backread.testing import Dialect, Fault, MockServer, World
from helpers.mirrors import BatchSource, Row, batch, ended, missed, rows, sync

USERS = 150


def change(world: World, users: int) -> None:
    """Adds a message to this many lists."""
    for user_id in world.user_ids()[:users]:
        world.add_messages(user_id, 1)


def quick(mirror: Mirror, server: MockServer, **options: Any) -> SyncReport:
    return sync(mirror, server, mode="quick", **options)


@pytest.fixture
def server():
    with MockServer(World(seed=3, users=USERS, messages_per_user=(1, 30))) as running:
        yield running


@pytest.fixture
def trusting(mirror, server):
    """A mirror whose runs have seen that hints hold."""
    for changes, said in ((0, "not trusted yet: 0 of 30 changes"), (60, "None of 60 changes")):
        change(server.world, changes)
        report = quick(mirror, server)
        assert report.mode == "incremental"
        assert said in report.evidence
    return mirror


def test_quick_run_reads_the_lists_of_users_who_moved_and_a_sample(trusting, server):
    [(seen,)] = rows(trusting, "SELECT max(last_seen_at) FROM messages")
    change(server.world, 10)
    report = quick(trusting, server)
    assert (report.mode, report.lists_trusted, report.lists_audited) == ("quick", 90, 50)
    assert report.requests == 10 + 50 + 2
    assert report.lists_by_certificate == {"snapshot": USERS}
    assert report.audit.startswith("50 of 140 skipped lists were drawn at random and read: none")
    assert "95 % confidence fewer than 5.9 % of the others (6) have" in report.audit
    assert missed(trusting, server.world) == []
    # What was skipped is as its last reading left it, and not missed.
    old = f"SELECT count(*) FROM conversations WHERE checked_at < '{report.started_at}'"
    assert rows(trusting, old) == [(90,)]
    assert rows(trusting, f"SELECT count(*) FROM messages WHERE last_seen_at < '{seen}'") == [(0,)]
    full = sync(trusting, server, mode="full")
    assert (full.deleted, full.messages_updated) == (0, 0)


def test_miss_ends_the_trust_and_the_run_reads_all_lists(trusting, server):
    quick(trusting, server)
    server.dialect = Dialect(hints="never")
    change(server.world, USERS)
    report = quick(trusting, server)
    assert (report.mode, report.lists_trusted) == ("incremental", 0)
    assert report.audit_misses > 0
    assert "updated_at and online_at had not moved" in report.audit
    assert missed(trusting, server.world) == []
    following = quick(trusting, server)
    assert (following.mode, following.audit_misses) == ("incremental", 0)
    assert trusting.status().ok


@pytest.mark.parametrize("gone", ["hints", "time", "certificate"])
def test_lists_that_may_not_be_skipped_are_read(trusting, server, gone):
    world, options = server.world, {}
    user_id = world.user_ids()[-1]
    if gone == "hints":
        world.edit_user(user_id, updated_at=None, online_at=None)
        quick(trusting, server)
    elif gone == "time":
        options["max_staleness"] = timedelta(0)
    else:
        server.on("messages", user=user_id).fail(Fault.status(500))
        sync(trusting, server)
        server.clear_faults()
    server.dialect = Dialect(hints="never")
    world.add_messages(user_id, 1)
    report = quick(trusting, server, **options)
    if gone != "time":
        # The change says nothing of hints.
        assert (report.mode, report.audit_misses) == ("quick", 0)
    assert missed(trusting, world) == []


def test_resumed_quick_run_keeps_its_sample(trusting, server):
    def stop(progress: Any) -> None:
        if progress.lists:
            raise KeyboardInterrupt

    # Few requests at once, so that few are lost when the first part is stopped.
    with server.client(max_concurrency=4) as client:
        with pytest.raises(KeyboardInterrupt):
            trusting.sync(client, mode="quick", on_progress=stop)
        report = trusting.sync(client, mode="quick")
    assert report.resumed
    assert (report.run.lists_audited, report.run.lists_trusted) == (50, 100)
    # Two pages of users in each part, and what was under way when the first was stopped.
    assert report.run.requests <= 50 + 2 * 2 + 2 * 16


def test_budget_that_ends_before_the_audit_leaves_nothing_trusted(trusting, server):
    # It ends before the sample is drawn, then before it is read.
    report = quick(trusting, server, max_requests=1)
    assert "audit did not end: of 0 lists" in report.audit
    report = quick(trusting, server, max_requests=20)
    assert (report.state, report.mode, report.lists_trusted) == ("partial", "quick", 0)
    assert "audit did not end: of 50 lists" in report.audit
    status = trusting.status()
    assert (status.audit_ok, status.audit) == (False, report.audit)
    report = quick(trusting, server)
    assert (report.state, report.run.lists_trusted) == ("finished", 100)


def test_budget_bounds_the_requests_for_changes_that_came_during_the_run(trusting, server):
    sync(trusting, server, max_requests=10)
    change(server.world, 100)
    report = sync(trusting, server, max_requests=30)
    assert (report.requests, report.audit_misses) == (30, 0)
    # What could not be checked is neither a miss nor evidence.
    sync(trusting, server)
    [(unverified, misses)] = rows(
        trusting, "SELECT lists_unverified, audit_misses FROM runs ORDER BY run_id DESC LIMIT 1"
    )
    assert (unverified > 0, misses) == (True, 0)


AT = datetime.fromisoformat("2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("answer", "misses"),
    [
        (batch([{"id": 1, "updated_at": AT}]), 1),
        (batch([{"id": 1, "updated_at": AT + timedelta(seconds=1)}]), 0),
        (batch(gone=[{"resource": "users", "user_id": 1, "id": 1}]), 0),
        (batch(), 0),
    ],
    ids=["as listed", "moved by now", "gone by now", "not fetched"],
)
def test_change_that_came_during_the_run_is_no_miss(mirror, answer, misses):
    users: list[Row] = [{"id": 1, "updated_at": AT}, {"id": 2}]
    BatchSource(batch(users, swept="snapshot")).sync_into(mirror.folder)
    unmoved = [ended(1, moved=False, rows_differ=True)]
    source = BatchSource(batch(users, swept="snapshot", lists=unmoved), answers=[answer])
    report = source.sync_into(mirror.folder)
    assert ([each["id"] for each in source.asked], report.audit_misses) == ([1], misses)


@pytest.mark.parametrize(
    ("fields", "changed"),
    [
        ({"body": "another"}, True),
        ({"file_url": "https://a.example/1?signature=2"}, False),
        ({"file_url": "https://a.example/2?signature=1"}, True),
        ({"read_by_user": True, "sender_name": "Renamed"}, False),
    ],
)
def test_what_counts_as_a_change(mirror, fields, changed):
    users: list[Row] = [{"id": 1, "updated_at": AT}]
    message: Row = {"user_id": 1, "id": 1, "body": "said"}
    message["file_url"] = "https://a.example/1?signature=1"
    for said in (message, message | fields):
        read = batch(users, [said], swept="snapshot", lists=[ended(1, moved=True)])
        BatchSource(read).sync_into(mirror.folder)
    found = rows(mirror, "SELECT changes_announced FROM runs WHERE run_id = 2")
    assert found == [(int(changed),)]
