"""Which rows a full sync marks as deleted, by what is proved of their lists."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from helpers.api_rows import message, paged, user
from helpers.mirrors import BatchSource, Row, batch, marked, rows, sync
from helpers.scripted_server import Request, answer

USERS: list[Row] = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}, {"id": 3}]
OF_1: list[Row] = [{"user_id": 1, "id": 11, "body": "one"}, {"user_id": 1, "id": 12, "body": "two"}]
OF_2: list[Row] = [{"user_id": 2, "id": 21}, {"user_id": 2, "id": 22}]
PROVED: Any = {1: "snapshot", 2: "snapshot", 3: "snapshot"}
HELD = batch(USERS, OF_1 + OF_2, swept="snapshot", lists=PROVED)
SHOWN = [OF_1[0], OF_2[0]]
LINKED = batch(USERS[:2], SHOWN, swept="linked", lists={1: "linked", 2: "snapshot"})
"""Neither user 3 nor messages 12 and 22."""

UNFIT = [{"resource": "users", "user_id": 1, "id": 1}]
UNFIT += [{"resource": "messages", "user_id": 1, "id": 12}]
NO_IDS = [{"resource": "users"}, {"resource": "messages", "user_id": 1}]


def gone(resource: str, user_id: int, row_id: int) -> Any:
    """The answer that there is no such row."""
    return batch(gone=[{"resource": resource, "user_id": user_id, "id": row_id}])


GONE_12 = gone("messages", 1, 12)
THIRD = batch(USERS[2:])
WITHOUT_2 = batch([USERS[0], USERS[2]], swept="linked", lists={3: "snapshot"})
MISFITS = batch(USERS[1:2], SHOWN, UNFIT, swept="snapshot", lists={1: "snapshot", 2: "snapshot"})
WITHOUT_IDS = batch(USERS[:1], OF_1[:1], NO_IDS, swept="linked", lists={1: "linked"})
CASES = {
    "no answer by id": ([LINKED], [], [3, 12, 22], ([], [22])),
    "answers by id": ([LINKED], [THIRD, GONE_12], [3, 12, 22], ([], [12, 22])),
    "found deleted while the list was read": ([LINKED, GONE_12], [THIRD], [3, 22], ([], [12, 22])),
    "a deleted user with all messages": ([WITHOUT_2], [gone("users", 2, 2)], [2], ([2], [21, 22])),
    "shown rows that do not fit": ([MISFITS], [], [22], ([3], [22])),
    "linked lists with records without an id": ([WITHOUT_IDS], [], [], ([], [])),
}


@pytest.mark.parametrize(("shown", "answers", "asked", "deleted"), CASES.values(), ids=CASES)
def test_full_sync_marks_what_is_proved(mirror, shown, answers, asked, deleted):
    BatchSource(HELD).sync_into(mirror.folder)
    source = BatchSource(*shown, answers=answers)
    report = source.sync_into(mirror.folder, "full")
    assert sorted(each["id"] for each in source.asked) == asked
    assert marked(mirror) == deleted
    assert report.deleted == sum(map(len, deleted))
    # What comes back is not deleted any more.
    BatchSource(HELD).sync_into(mirror.folder)
    assert marked(mirror) == ([], [])


def test_full_sync_reports_and_dates_what_it_fetched_by_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    source = BatchSource(LINKED, answers=[THIRD, GONE_12])
    report = source.sync_into(mirror.folder, "full")
    assert sorted(source.asked, key=lambda each: each["id"]) == [
        {"resource": "users", "user_id": 3, "id": 3},
        {"resource": "messages", "user_id": 1, "id": 12},
        {"resource": "messages", "user_id": 2, "id": 22},
    ]
    assert (report.deleted, report.rows_asked, report.users, report.users_updated) == (2, 2, 3, 0)
    assert rows(mirror, "SELECT deleted, rows_asked FROM runs WHERE run_id = 2") == [(2, 2)]
    seen = "SELECT run_id FROM {} AS row JOIN runs ON row.last_seen_at = ended_at WHERE row.id = {}"
    assert rows(mirror, seen.format("users", 3)) == [(2,)]
    assert rows(mirror, seen.format("messages", 12)) == [(1,)]
    # What was marked is not asked for again.
    again = BatchSource(LINKED, answers=[THIRD])
    assert again.sync_into(mirror.folder, "full").deleted == 0
    assert [each["id"] for each in again.asked] == [3]


MANY = [{"id": each} for each in range(1, 41)]
TALK: list[Row] = [{"user_id": 1, "id": each} for each in range(100, 140)]
ALL_PROVED: Any = {each["id"]: "snapshot" for each in MANY}
NO_MESSAGES = batch(MANY, swept="snapshot", lists=ALL_PROVED)


@pytest.fixture
def held(mirror: Any) -> Any:
    """A mirror of 40 users and 40 messages."""
    BatchSource(batch(MANY, TALK, swept="snapshot", lists=ALL_PROVED)).sync_into(mirror.folder)
    return mirror


EMPTY = {
    r"the list left out users; user \d+ was found by id": (batch(swept="snapshot"), [batch(MANY)]),
    r"most lists left out messages; message 1\d\d of user 1 was found by id": (
        NO_MESSAGES,
        [batch(messages=TALK)],
    ),
    "most lists left out messages, and 16 of 16 could not be checked by id": (NO_MESSAGES, []),
}


@pytest.mark.parametrize("reason", EMPTY)
def test_full_sync_of_empty_lists_marks_nothing_unless_all_of_a_sample_are_gone(held, reason):
    """A service that fails may answer that it has no rows, which a snapshot takes for a fact."""
    shown, answers = EMPTY[reason]
    empty = BatchSource(shown, answers=answers)
    report = empty.sync_into(held.folder, "full")
    resource = "messages" if shown is NO_MESSAGES else "users"
    assert (len(empty.asked), {each["resource"] for each in empty.asked}) == (16, {resource})
    assert report.deleted == 0
    assert marked(held) == ([], [])
    said = report.certificate_reason
    if shown is NO_MESSAGES:
        assert report.lists_by_certificate == {"uncertified": len(MANY)}
        [(said,)] = rows(held, "SELECT DISTINCT reason FROM lists")
    assert re.fullmatch(reason, said)


def test_an_empty_list_of_users_is_believed_if_none_is_found_by_id(held):
    gone = batch(gone=[{"resource": "users", "user_id": each["id"], **each} for each in MANY])
    empty = BatchSource(batch(swept="snapshot"), answers=[gone])
    report = empty.sync_into(held.folder, "full")
    assert len(empty.asked) == 16
    assert (report.deleted, report.certificate) == (len(MANY) + len(TALK), "snapshot")


def test_full_sync_marks_a_few_rows_without_fetching_by_id(held):
    fewer = BatchSource(batch(MANY[:25], TALK, swept="snapshot", lists=ALL_PROVED))
    assert fewer.sync_into(held.folder, "full").deleted == 15
    assert fewer.asked == []


@pytest.fixture
def cached() -> Callable[[Request], bytes]:
    """A service with a cache that may give the list of user 1 as it was when it had few messages.

    Attributes of the function: ``talks``, the messages by user, and ``old``, the number of messages
    of user 1 in the cached list, if that is given.
    """

    def service(request: Request) -> bytes:
        parts = request.path.split("/")
        if parts[-1] == "users":
            return paged([user(each) for each in service.talks])(request)
        held = service.talks[int(parts[3])]
        if parts[-1] != "messages":
            found = [each for each in held if each["id"] == int(parts[-1])]
            return answer(200, found[0]) if found else answer(404)
        return paged(held[: service.old if parts[3] == "1" else None], key="messages")(request)

    service.talks = {each: [message(10 * each + at) for at in range(6)] for each in (1, 2, 3)}
    service.old = None
    return service


def test_full_sync_marks_nothing_after_a_cached_page(mirror, scripted, cached):
    server = scripted(cached)
    sync(mirror, server)
    cached.old = 4
    # Of one list the oldest message is gone, of the other one the newest.
    del cached.talks[2][0], cached.talks[3][-1]
    sync(mirror, server)
    sent = len(server.requests)
    report = sync(mirror, server, mode="full")
    assert marked(mirror) == ([], [20, 35])
    assert report.uncertified_users == (1,)
    assert rows(mirror, "SELECT reason FROM lists WHERE user_id = 1") == [
        ("the list left out message 15, which was found by its id",)
    ]
    by_id = [each.path for each in server.requests[sent:] if "/messages/" in each.path]
    assert sorted(by_id) == ["/external/users/1/messages/15", "/external/users/3/messages/35"]
    cached.old = None
    report = sync(mirror, server, mode="full")
    assert (report.deleted, report.uncertified_users) == (0, ())
    assert marked(mirror) == ([], [20, 35])
