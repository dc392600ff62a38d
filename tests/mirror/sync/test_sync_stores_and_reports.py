"""What a sync stores, each row once and only what changed, and what it reports of that."""

import pickle
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from backread.mirror import Mirror, SyncProgress
from backread.mirror.sync.progress import LEAST_LISTS, Meter, Speed
from backread.models import OtherSender
from backread.testing import MockServer, World
from helpers.api_rows import message, user
from helpers.mirrors import BatchSource, Progress, Row, batch, ended, missed, rows, sync
from helpers.probed_service import Rows


def test_first_sync_stores_every_row_with_every_field(mirror):
    world = World(seed=3, users=40, messages_per_user=(0, 250))
    with MockServer(world) as server, server.client() as client:
        report = mirror.sync(client)
        assert (report.users, report.users_added) == (40, 40)
        assert report.messages == report.messages_added == world.total_messages
        assert (report.run_id, report.mode, report.resumed) == (1, "incremental", False)
        assert (report.certificate, report.uncertified_users) == ("snapshot", ())
        short = [each for each in world.user_ids() if len(world.message_ids(each)) <= 99]
        assert report.lists_by_certificate["snapshot"] == len(short)
        assert timedelta(0) < report.ended_at - report.started_at < timedelta(minutes=5)
        for listed in client.users.list():
            held = mirror.conversation(listed.id)
            assert held.user == listed
            sent = client.messages.list(listed.id).to_list()
            assert list(held) == sorted(sent, key=lambda each: (each.created_at, each.id))


def test_nothing_that_came_is_dropped_in_silence(mirror, scripted):
    sent: list[Any] = [user(5, shoe_size=43), {"id": "six"}, "seven"]
    robot = {"sender_type": "robot", "sender": {"id": 9, "model": "R2"}}
    said = [message(1, mood="good", **robot)]
    server = scripted(Rows(sent, {0: said, 1: said, 5: said}))
    for number in range(2):
        # What does not fit is stored once, wherever it is in its page.
        sent.insert(0, user(number))
        assert sync(mirror, server).rejects == 2
    kept = "SELECT json, reason, run_id, first_seen_at < last_seen_at FROM rejects ORDER BY json"
    assert rows(mirror, kept) == [
        ('"seven"', "$: not an object", 2, True),
        ('{"id": "six"}', "$.id: the id is not a 64-bit integer", 2, True),
    ]
    held = mirror.conversation(5)
    assert (held.user.extra, held[0].extra) == ({"shoe_size": 43}, {"mood": "good"})
    assert held[0].sender == OtherSender("robot", 9, {"model": "R2"})


def messages_of(user_id: int, *ids: int, body: str | None = None) -> list[Row]:
    return [{"user_id": user_id, "id": each, "body": body} for each in ids]


@pytest.mark.parametrize("first", [True, False])
def test_row_that_comes_again_is_stored_once_as_it_came_last(mirror, first):
    """A first run adds rows at once, a later one merges them."""
    if not first:
        BatchSource(batch([{"id": 9}], messages_of(9, *range(90, 99)))).sync_into(mirror.folder)
    report = BatchSource(
        batch([{"id": 1}, {"id": 2}], messages_of(1, 11, 12, 13, body="old")),
        # One twice in a batch, one that is held, one that only reads as if it were.
        batch([{"id": 2, "name": "Ada"}], messages_of(2, 21, body="old")),
        batch((), messages_of(1, 12, body="newer") + messages_of(1, 14)),
        batch((), messages_of(2, 23, body="old") + messages_of(2, 23, body="newer")),
        batch((), messages_of(2, 11, body="another's"), swept="snapshot"),
    ).sync_into(mirror.folder)
    assert (report.users, report.users_added, report.users_updated) == (3, 2, 1)
    assert (report.messages, report.messages_added, report.messages_updated) == (9, 7, 1)
    held = "SELECT user_id, id, body FROM messages WHERE user_id < 9 ORDER BY ALL"
    of_1 = [(1, 11, "old"), (1, 12, "newer"), (1, 13, "old"), (1, 14, None)]
    of_2 = [(2, 11, "another's"), (2, 21, "old"), (2, 23, "newer")]
    assert rows(mirror, held) == of_1 + of_2
    users = rows(mirror, "SELECT id, name FROM users WHERE id < 9 ORDER BY id")
    assert users == [(1, None), (2, "Ada")]


OTHERS: list[Row] = [{"user_id": 2, "id": each} for each in (1, 2)]
TALK: list[Row] = [{"user_id": 1, "id": each, "body": str(each)} for each in range(100, 220)]
SEEN_BY = """
    SELECT messages.id, run_id FROM messages JOIN runs ON last_seen_at = ended_at
    WHERE user_id = 1 ORDER BY messages.id
"""


def read(list_of_1: Row, messages: list[Row]) -> BatchSource:
    """A service that gives these messages of user 1, and both of user 2."""
    users = [{"id": 1}, {"id": 2}]
    lists = [list_of_1, ended(2)]
    return BatchSource(batch(users, messages + OTHERS, swept="snapshot", lists=lists))


WHOLE = ended(1, "counted", rows=120)
END = ended(1, "counted", rows=120, kind="end")
UNCERTIFIED_END = ended(1, "uncertified", rows=120, kind="end")
NEW: Row = {"user_id": 1, "id": 220, "body": "220"}


@pytest.mark.parametrize(
    ("syncs", "seen"),
    [
        ([(END, [*TALK[-10:], NEW])], dict.fromkeys(range(100, 221), 2)),
        ([(UNCERTIFIED_END, TALK[-10:])], {each: 1 + (each >= 210) for each in range(100, 220)}),
        (
            [(ended(1, "linked", rows=119), TALK[:5] + TALK[6:]), (END, TALK[-10:])],
            {each: 1 if each == 105 else 3 for each in range(100, 220)},
        ),
    ],
    ids=["certified end", "uncertified end", "missed by a whole read"],
)
def test_last_seen_moves_with_what_a_list_proves(mirror, syncs, seen):
    read(WHOLE, TALK).sync_into(mirror.folder)
    for list_of_1, messages in syncs:
        report = read(list_of_1, messages).sync_into(mirror.folder)
        assert report.messages_updated == 0
    assert dict(rows(mirror, SEEN_BY)) == seen


# --- reports and progress -------------------------------------------------------------------------


def test_sync_report_counts_one_call_and_its_run_all_calls(mirror, tmp_path):
    chance, reports, seen = random.Random(1), [], []
    with MockServer(World(seed=7, users=100, messages_per_user=(0, 400))) as server:
        whole = sync(Mirror(tmp_path / "whole"), server)
        while not reports or reports[-1].partial:
            server.forget()
            budget = chance.randrange(20, 120)
            report = sync(mirror, server, max_requests=budget, on_progress=seen.append)
            assert report.requests == sum(server.counts().values()) <= budget
            last = seen[-1]
            assert (last.users, last.messages) == (report.users, report.messages)
            assert (last.requests, last.run_requests) == (report.requests, report.run.requests)
            reports.append(report)
        assert missed(mirror, server.world) == []
        count = server.world.total_messages
    run = report.run
    assert (last.lists, last.lists_total) == (100, 100)
    for name in ("requests", "users", "users_added", "messages", "messages_added", "seconds"):
        assert sum(getattr(each, name) for each in reports) == pytest.approx(getattr(run, name))
    assert (run.users_added, run.messages_added, run.lists_by_kind) == (100, count, {"whole": 100})
    assert sum((Counter(each.lists_by_kind) for each in reports), Counter()) == run.lists_by_kind
    assert all(earlier.ended_at < later.started_at for earlier, later in pairwise(reports))
    assert run.started_at == reports[0].started_at
    assert [each.resumed for each in reports] == [False] + [True] * (len(reports) - 1)
    assert rows(mirror, "SELECT requests, users FROM runs") == [(run.requests, run.users)]
    assert run.requests <= 1.05 * whole.requests + 3 * len(reports)


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
    def at(minute: int) -> datetime:
        return datetime(2026, 3, 1, 10, minute, tzinfo=UTC)

    said: Row = {"user_id": 5, "read_by_user": True, "read_by_operator": True}
    user, operator = said | {"sender_type": "user"}, said | {"sender_type": "operator"}
    invitation = operator | {"auto_invitation": True}
    unread = {"read_by_operator": False}
    messages = [
        invitation | {"id": 1, "created_at": at(0)},
        user | unread | {"id": 2, "created_at": at(2)},
        invitation | {"id": 3, "created_at": at(3)},
        operator | {"id": 4, "created_at": at(7), "read_by_user": False},
        user | unread | {"id": 5, "created_at": at(9), "file_url": "https://example.com/a.png"},
    ]
    users = [{"id": 5, "name": "Ada"}, {"id": 6}]
    read = batch(users, messages, swept="snapshot", lists={5: "snapshot", 6: "snapshot"})
    BatchSource(read).sync_into(mirror.folder)
    found = mirror.sql("SELECT * EXCLUDE checked_at FROM conversations ORDER BY user_id")
    spoken, silent = found.fetchall()
    assert spoken == (5, "Ada", None, 5, 2, 1, 2, 1, at(0), at(9), "user", 300.0, 1, 2, True)
    assert found.columns == [
        "user_id", "name", "email", "messages", "user_messages", "operator_messages",
        "auto_invitations", "files", "first_message_at", "last_message_at", "last_sender_type",
        "first_response_seconds", "unread_by_user", "unread_by_operator", "complete",
    ]  # fmt: skip
    assert (silent[0], silent[3], silent[11]) == (6, 0, None)
    assert "[https://example.com/a.png]" in str(mirror.conversation(5)).splitlines()[-1]


def left(steps: list[tuple[float, int, int | None]], before: int = 0) -> list[Speed]:
    """What is said after each step: seconds that pass, lists done since, and their total."""
    now, done = [1000.0], before
    meter = Meter(lambda: now[0])
    said = [meter.observe(0, 0, done, steps[0][2])]
    for number, (seconds, lists, total) in enumerate(steps, 1):
        now[0] += seconds
        done += lists
        said.append(meter.observe(number * 1000, 0, done, total))
    return said


def test_time_left_is_that_of_the_pace():
    for step, speed in [*enumerate(left([(2.0, 20, 1000)] * 50))][2:]:
        assert speed.seconds_left == pytest.approx(100.0 - 2 * step, abs=1e-6)
        assert speed.rate == pytest.approx(500.0)
    # Lists that an earlier sync had finished tell nothing of it.
    assert left([(10.0, 20, 1000)], before=900)[-1].seconds_left == pytest.approx(40.0)
    # It grows while nothing ends, and is never negative.
    stalled = left([(5, 50, 100)] + [(5, 0, 100)] * 20 + [(5, 49, 100), (5, 1, 100), (5, 0, 90)])
    seconds = [speed.seconds_left for speed in stalled[1:]]
    assert seconds[:21] == sorted(seconds[:21])
    assert seconds[20] > 2 * seconds[0]
    assert seconds[-2:] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ((2.0, 20, None), False),
        ((0.5, 20, 1000), False),
        ((60.0, LEAST_LISTS - 1, 1000), False),
        ((60.0, LEAST_LISTS, 1000), True),
    ],
)
def test_time_left_is_not_said_without_ground(step, said):
    first, then = left([step])
    assert (first.seconds_left, then.seconds_left is not None) == (None, said)


class PacedSource(BatchSource):
    """Says how far it has come, as the core does."""

    def _sync_run(self, known, **options):  # type: ignore[no-untyped-def]
        reading = super()._sync_run(known, **options)
        reading._progress = Progress(users_total=2, lists_total=7, lists_done=3)
        return reading


def test_on_progress_is_given_what_the_reading_says(mirror):
    seen: list[SyncProgress] = []
    BatchSource(batch([{"id": 3}], swept="snapshot")).sync_into(mirror.folder)
    batches = batch([{"id": 1}]), batch([{"id": 2}], [{"user_id": 1, "id": 1}], swept="linked")
    source = PacedSource(*batches, answers=[batch([{"id": 3}])])
    report = source.sync_into(mirror.folder, "full", on_progress=seen.append)
    phases = list(dict.fromkeys(each.phase for each in seen))
    assert phases == ["reading", "checking", "finishing", "publishing", "finished"]
    last = [each for each in seen if each.phase == "reading"][-1]
    assert (last.users, last.users_total, last.messages, last.rows) == (2, 2, 1, 3)
    assert (last.lists, last.lists_total, last.requests) == (3, 7, 2)
    assert last.rate > 0
    # What has ended has no pace.
    assert (seen[-1].pace, seen[-1].rate, seen[-1].seconds_left) == (0.0, 0.0, None)
    assert (seen[-1].requests, seen[-1].users) == (report.requests, report.users)
