"""What `SyncReport`, `SyncProgress` and `conversations` count, and the time left that is shown."""

import pickle
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from backread.mirror import SyncProgress
from backread.mirror.sync.progress import LEAST_LISTS, Meter, Speed
from backread.testing import MockServer, World
from helpers.mirrors import BatchSource, Progress, Row, batch, ended, missed, rows, sync


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
        assert missed(mirror, server.world) == []
    run = report.run
    assert (last.lists, last.lists_total) == (300, 300)
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
    users = [{"id": user_id} for user_id in (1, 2, 3)]
    unread = ended(1, "uncertified", kind="unread", reason="it broke")
    BatchSource(batch(users, swept="snapshot", lists=[unread]), ended_early=True).sync_into(
        mirror.folder
    )
    report = BatchSource(batch(lists=[unread, ended(2)]), ended_early=True).sync_into(mirror.folder)
    assert report.lists_by_kind == {"unread": 1, "whole": 1}
    assert (report.unread_users, report.users, report.run.users) == ((1,), 0, 3)


def test_report_pickles_renders_and_is_in_utc(mirror, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    report = BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(mirror.folder)
    again = pickle.loads(pickle.dumps(report))
    assert (again, hash(again)) == (report, hash(report))
    assert pickle.loads(pickle.dumps(mirror)) == mirror
    [(text,)] = rows(mirror, "SELECT ended_at::VARCHAR FROM runs")
    assert text.endswith("+00")
    assert abs(datetime.fromisoformat(text) - datetime.now(UTC)) < timedelta(minutes=5)
    unproved = replace(report, uncertified_users=tuple(range(1, 5_001)))._repr_html_()
    assert "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4,990 more" in unproved


def test_conversations_count_what_was_said(mirror):
    def said(number: int, minute: int, sender: str, **fields: Any) -> Row:
        return {
            "user_id": 5,
            "id": number,
            "body": f"text {number}",
            "created_at": datetime(2026, 3, 1, 10, minute, tzinfo=UTC),
            "sender_type": sender,
            "auto_invitation": False,
            "read_by_user": True,
            "read_by_operator": True,
        } | fields

    messages = [
        said(1, 0, "operator", auto_invitation=True),
        said(2, 2, "user", read_by_operator=False),
        said(3, 3, "operator", auto_invitation=True),
        said(4, 7, "operator", read_by_user=False),
        said(5, 9, "user", file_url="https://example.com/a.png", read_by_operator=False),
    ]
    users = [{"id": 5, "name": "Ada"}, {"id": 6}]
    read = batch(users, messages, swept="snapshot", lists={5: "snapshot", 6: "snapshot"})
    BatchSource(read).sync_into(mirror.folder)
    spoken, silent = (
        mirror.sql("SELECT * EXCLUDE checked_at FROM conversations ORDER BY user_id")
        .to_arrow_table()
        .to_pylist()
    )
    assert spoken == {
        "user_id": 5,
        "name": "Ada",
        "email": None,
        "messages": 5,
        "user_messages": 2,
        "operator_messages": 1,
        "auto_invitations": 2,
        "files": 1,
        "first_message_at": datetime(2026, 3, 1, 10, 0, tzinfo=UTC),
        "last_message_at": datetime(2026, 3, 1, 10, 9, tzinfo=UTC),
        "last_sender_type": "user",
        "first_response_seconds": 300.0,
        "unread_by_user": 1,
        "unread_by_operator": 2,
        "complete": True,
    }
    assert (silent["user_id"], silent["messages"], silent["first_response_seconds"]) == (6, 0, None)
    text = str(mirror.conversation(5))
    assert text.splitlines()[0] == "Ada (user 5), 5 messages"
    assert "2026-03-01 10:09  user: text 5 [https://example.com/a.png]" in text


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def simulated(
    seconds: list[float], total: int | None, *, before: int = 0, lists: int = 20
) -> list[tuple[float, Speed]]:
    """What is said after each batch, with the time that passed; each batch ends some lists."""
    clock = Clock()
    meter = Meter(clock)
    done, read = before, 0
    said = [(0.0, meter.observe(read, 0, done, total))]
    for each in seconds:
        clock.now += each
        done, read = done + lists, read + 1000
        said.append((clock.now - 1000.0, meter.observe(read, 0, done, total)))
    return said


def test_time_left_is_that_of_a_steady_pace():
    said = simulated([2.0] * 50, 1000)
    for passed, speed in said[2:]:
        assert speed.seconds_left == pytest.approx(100.0 - passed, abs=1e-6)
        assert speed.rate == pytest.approx(500.0)


def test_nothing_is_said_without_ground():
    assert [speed.seconds_left for _, speed in simulated([], 1000)] == [None]
    # How many lists there are is not known yet.
    assert {speed.seconds_left for _, speed in simulated([2.0] * 9, None)} == {None}
    # Too short a time, and too few lists.
    assert simulated([0.5], 1000)[-1][1].seconds_left is None
    assert simulated([60.0], 1000, lists=LEAST_LISTS - 1)[-1][1].seconds_left is None
    assert simulated([60.0], 1000, lists=LEAST_LISTS)[-1][1].seconds_left is not None


def test_lists_that_an_earlier_sync_had_finished_tell_nothing_of_the_pace():
    [_, (_, speed)] = simulated([10.0], 1000, before=900)
    assert speed.seconds_left == pytest.approx(40.0)


def test_time_left_grows_while_nothing_ends_and_is_never_negative():
    clock = Clock()
    meter = Meter(clock)
    meter.observe(0, 0, 0, 100)
    left = []
    for lists, total in [(50, 100)] + [(50, 100)] * 20 + [(99, 100), (100, 100), (100, 90)]:
        clock.now += 5
        speed = meter.observe(0, 0, lists, total)
        assert speed.seconds_left is not None
        left.append(speed.seconds_left)
    assert left[:21] == sorted(left[:21])
    assert left[20] > 2 * left[0]
    assert left[-2:] == [0.0, 0.0]
    assert min(left) >= 0


class PacedSource(BatchSource):
    """Says how far it has come, as the core does."""

    def _sync_run(self, known, **options):  # type: ignore[no-untyped-def]
        reading = super()._sync_run(known, **options)
        reading._progress = Progress(users_total=2, lists_total=7, lists_done=3)
        return reading


def test_on_progress_is_given_what_the_reading_says(mirror):
    seen: list[SyncProgress] = []
    batches = batch([{"id": 1}]), batch([{"id": 2}], [{"user_id": 1, "id": 1}], swept="snapshot")
    PacedSource(*batches).sync_into(mirror.folder, on_progress=seen.append)
    phases = ["reading"] * 3 + ["finishing", "publishing", "finished"]
    assert [each.phase for each in seen] == phases
    last = seen[2]
    assert (last.users, last.users_total, last.messages, last.rows) == (2, 2, 1, 3)
    assert (last.lists, last.lists_total, last.requests) == (3, 7, 2)
    assert last.rate > 0
    # What has ended has no pace.
    assert {(each.pace, each.rate, each.seconds_left) for each in seen[3:]} == {(0.0, 0.0, None)}
    seen.clear()
    source = BatchSource(batch([{"id": 1}], swept="linked"), answers=[batch([{"id": 2}])])
    report = source.sync_into(mirror.folder, "full", on_progress=seen.append)
    assert list(dict.fromkeys(each.phase for each in seen)) == [
        "reading",
        "checking",
        "finishing",
        "publishing",
        "finished",
    ]
    assert seen[-1].requests == report.requests
    assert (seen[-1].users, report.users) == (2, 2)
