"""Lists that are empty or old are doubted: a full sync fetches rows by id before it marks them."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from backread import ConnectError
from backread.testing import MockServer, World
from helpers.api_rows import message, paged, user
from helpers.mirrors import BatchSource, Row, batch, marked, rows, sync
from helpers.scripted_server import Request, answer

pytest.importorskip("duckdb")

from backread.mirror.store.store import Store

MANY = [{"id": each} for each in range(1, 41)]
TALK: list[Row] = [{"user_id": 1, "id": each} for each in range(100, 140)]
ALL_PROVED: Any = {each["id"]: "snapshot" for each in MANY}


@pytest.fixture
def held(mirror: Any) -> Any:
    """A mirror of 40 users and 40 messages."""
    BatchSource(batch(MANY, TALK, swept="snapshot", lists=ALL_PROVED)).sync_into(mirror.folder)
    return mirror


@pytest.mark.parametrize(
    ("shown", "answers", "resource", "reason"),
    [
        (
            batch(swept="snapshot"),
            [batch(MANY)],
            "users",
            r"the list left out users; user (\d+) was found by id",
        ),
        (
            batch(MANY, swept="snapshot", lists=ALL_PROVED),
            [batch(messages=TALK)],
            "messages",
            r"most lists left out messages; message (1\d\d) of user 1 was found by id",
        ),
        (
            batch(swept="snapshot"),
            [],
            "users",
            "the list left out users, and (16) of 16 could not be checked by id",
        ),
    ],
    ids=["users", "messages", "no answer by id"],
)
def test_full_sync_of_empty_lists_marks_nothing_unless_all_of_a_sample_are_gone(
    held, shown, answers, resource, reason
):
    """A service that fails may answer that it has no rows, which a snapshot takes for a fact."""
    empty = BatchSource(shown, answers=answers)
    report = empty.sync_into(held.folder, "full")
    assert len(empty.asked) == 16
    assert {each["resource"] for each in empty.asked} == {resource}
    assert report.deleted == 0
    assert marked(held) == ([], [])
    if resource == "users":
        assert report.certificate == "uncertified"
        said = report.certificate_reason
    else:
        assert report.lists_by_certificate == {"uncertified": len(MANY)}
        [[said]] = rows(held, "SELECT DISTINCT reason FROM lists")
    found = re.fullmatch(reason, said)
    assert found
    assert int(found[1]) in {16, *(each["id"] for each in empty.asked)}


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


def test_service_that_answers_every_list_with_nothing_loses_no_row(mirror, scripted):
    emptied = False

    def service(request: Request) -> bytes:
        *_, last = request.path.split("/")
        held = [user(each) for each in range(1, 21)] if last == "users" else [message(7)]
        if last in ("users", "messages"):
            return paged([] if emptied else held, key=last)(request)
        return answer(200, message(7) if "messages" in request.path else user(int(last)))

    server = scripted(service)
    sync(mirror, server)
    emptied = True
    reports = [sync(mirror, server, mode=mode) for mode in ("incremental", "full")]
    assert [each.deleted for each in reports] == [0, 0]
    assert marked(mirror) == ([], [])
    assert rows(mirror, "SELECT count(*) FROM messages") == [(20,)]
    assert reports[1].certificate == "uncertified"
    assert re.search("left out users; user .* found by id", reports[1].certificate_reason)
    emptied = False
    assert sync(mirror, server, mode="full").certificate == "snapshot"


@pytest.mark.parametrize("fails", ["status(500)", "status(403)", "garbage()"])
def test_nothing_is_marked_while_a_service_with_empty_lists_answers_nothing_by_id(
    backread_server, mirror, fails
):
    world = World(seed=3, users=12, messages_per_user=(3, 9))
    with backread_server.lane(world=world) as lane:
        lane.clock.virtual()
        sync(mirror, lane)
        [(held,)] = rows(mirror, "SELECT count(*) FROM messages")
        for user_id in lane.world.user_ids():
            for message_id in lane.world.message_ids(user_id):
                lane.world.remove_message(user_id, message_id)
        lane.on("message").fail(fails)
        report = sync(mirror, lane, mode="full")
    assert (report.deleted, report.lists_by_certificate) == (0, {"uncertified": 12})
    [[reason]] = rows(mirror, "SELECT DISTINCT reason FROM lists")
    assert reason == "most lists left out messages, and 16 of 16 could not be checked by id"
    assert rows(mirror, "SELECT count(*) FROM messages WHERE deleted_at IS NULL") == [(held,)]


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


@pytest.mark.parametrize("before", [[], ["incremental"], ["full"]])
def test_full_sync_marks_nothing_after_a_cached_page(mirror, scripted, cached, before):
    server = scripted(cached)
    sync(mirror, server)
    cached.old = 4
    # Of one list the oldest message is gone, of the other one the newest.
    del cached.talks[2][0], cached.talks[3][-1]
    for mode in before:
        sync(mirror, server, mode=mode)
    sent = len(server.requests)
    report = sync(mirror, server, mode="full")
    assert marked(mirror) == ([], [20, 35])
    assert report.uncertified_users == (1,)
    assert rows(mirror, "SELECT reason FROM lists WHERE user_id = 1") == [
        ("the list left out message 15, which was found by its id",)
    ]
    by_id = [each.path for each in server.requests[sent:] if "/messages/" in each.path]
    newest = ["/external/users/1/messages/15"]
    assert sorted(by_id) == newest + ([] if "full" in before else ["/external/users/3/messages/35"])
    cached.old = None
    report = sync(mirror, server, mode="full")
    assert (report.deleted, report.uncertified_users) == (0, ())
    assert marked(mirror) == ([], [20, 35])


def test_any_number_of_lists_may_have_lost_their_newest_message(mirror, monkeypatch):
    """A key of each in a statement took gigabytes, whatever the memory limit."""
    longest, query = [], Store.rows

    def measured(store: Store, text: str, *more: Any) -> Any:
        longest.append(len(text))
        return query(store, text, *more)

    with (
        MockServer(World(seed=5, users=400, messages_per_user=3)) as server,
        server.client() as client,
    ):
        mirror.sync(client)
        for user_id in server.world.user_ids():
            server.world.remove_message(user_id, server.world.message_ids(user_id)[-1])
        monkeypatch.setattr(Store, "rows", measured)
        assert mirror.sync(client, mode="full").deleted == 400
    assert max(longest) < 4_000


def test_an_old_page_marks_nothing_in_a_run_that_is_resumed_after_its_check(mirror):
    others: list[Row] = [{"user_id": 2, "id": each} for each in range(20, 40)]
    held: list[Row] = [{"user_id": 1, "id": each} for each in range(10, 14)]
    before = batch([{"id": 1}], held + others, swept="snapshot", lists={1: "counted"})
    BatchSource(before).sync_into(mirror.folder)
    shown = batch([{"id": 1}], [{"user_id": 1, "id": 10}], swept="snapshot", lists={1: "counted"})
    found = batch(messages=[{"user_id": 1, "id": 13}])
    first = BatchSource(shown, answers=[found, ConnectError("the connection broke")])
    with pytest.raises(ConnectError):
        first.sync_into(mirror.folder, "full")
    second = BatchSource(answers=[batch(messages=[{"user_id": 1, "id": 12}])])
    assert second.sync_into(mirror.folder).deleted == 0
    assert [each["id"] for each in first.asked + second.asked] == [13, 12]
    assert marked(mirror) == ([], [])
