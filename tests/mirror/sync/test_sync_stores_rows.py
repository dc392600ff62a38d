"""What a sync stores: every field, each row once, when it was seen; and only what changed."""

from datetime import timedelta
from typing import Any

import pytest

from backread.models import OtherSender
from backread.testing import MockServer, World
from helpers.api_rows import message, user
from helpers.mirrors import BatchSource, Row, batch, ended, rows, sync
from helpers.probed_service import Rows


def test_first_sync_stores_every_row_with_every_field(mirror):
    world = World(seed=3, users=40, messages_per_user=(0, 250))
    with MockServer(world) as server, server.client() as client:
        report = mirror.sync(client)
        assert (report.users, report.users_added) == (40, 40)
        assert report.messages == report.messages_added == world.total_messages
        assert (report.run_id, report.mode, report.resumed) == (1, "incremental", False)
        assert report.requests == sum(server.counts().values())
        assert (report.certificate, report.uncertified_users) == ("snapshot", ())
        short = [each for each in world.user_ids() if len(world.message_ids(each)) <= 99]
        assert report.lists_by_certificate["snapshot"] == len(short)
        assert sum(report.lists_by_certificate.values()) == report.lists_by_kind["whole"] == 40
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


def test_row_that_one_run_missed_is_no_change(mirror):
    users = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}]
    messages: list[Row] = [{"user_id": 1, "id": 11}, {"user_id": 1, "id": 12}]
    both = batch(users, messages, swept="uncertified")
    BatchSource(both).sync_into(mirror.folder)
    BatchSource(batch(users[:1], messages[:1], swept="uncertified")).sync_into(mirror.folder)
    unseen = "SELECT count(*) FROM users, runs WHERE id = 2 AND last_seen_at = ended_at AND run_id"
    assert rows(mirror, f"{unseen} = 1") == [(1,)]
    report = BatchSource(both).sync_into(mirror.folder)
    assert (report.users_updated, report.messages_updated) == (0, 0)
    assert rows(mirror, f"{unseen} = 3") == [(1,)]
    renamed = batch([{"id": 1, "name": "Ada"}, {"id": 2, "name": "Hopper"}], swept="uncertified")
    assert BatchSource(renamed).sync_into(mirror.folder).users_updated == 1


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
