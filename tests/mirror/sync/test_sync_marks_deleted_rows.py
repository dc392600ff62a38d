"""What a full sync marks as gone, and all that it must leave unmarked."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backread import ConnectError, DeadlineExceededError
from backread.testing import MockServer, World
from helpers.api_rows import message, paged, user
from helpers.mirrors import BatchSource, Row, batch, marked, rows, sync
from helpers.scripted_server import Request, answer

pytest.importorskip("duckdb")

from backread.mirror.store.store import Store

HELD = batch(
    [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}, {"id": 3}],
    [
        {"user_id": 1, "id": 11, "body": "one"},
        {"user_id": 1, "id": 12, "body": "two"},
        {"user_id": 2, "id": 21},
        {"user_id": 2, "id": 22},
    ],
    swept="snapshot",
    lists={1: "snapshot", 2: "snapshot", 3: "snapshot"},
)

HELD_OF_1 = [{"user_id": 1, "id": 11, "body": "one"}]


@pytest.fixture
def server() -> Iterator[MockServer]:
    """A world whose users fit in one response, so that the sweep over them is certified."""
    with MockServer(World(seed=3, users=40, messages_per_user=(0, 250))) as running:
        yield running


def test_full_sync_marks_deleted_rows_and_incremental_does_not(mirror, server):
    world = server.world
    sync(mirror, server)
    short = [each for each in world.user_ids() if 2 <= len(world.message_ids(each)) <= 99]
    gone, other = short[:2]
    lost = world.message_ids(other)[0]
    with_gone = len(world.message_ids(gone))
    world.remove_message(other, lost)
    world.remove_user(gone)
    assert sync(mirror, server).deleted == 0
    assert rows(mirror, "SELECT count(*) FROM messages WHERE deleted_at IS NOT NULL") == [(0,)]
    report = sync(mirror, server, mode="full")
    assert report.deleted == 2 + with_gone
    marked = rows(
        mirror, "SELECT DISTINCT user_id FROM messages WHERE deleted_at IS NOT NULL ORDER BY 1"
    )
    assert marked == sorted([(gone,), (other,)])
    assert rows(mirror, "SELECT id FROM users WHERE deleted_at IS NOT NULL") == [(gone,)]
    assert rows(mirror, f"SELECT * FROM conversations WHERE user_id = {gone}") == []
    assert lost not in {each.id for each in mirror.conversation(other)}
    # It was last seen by the first run, and the two after it did not show it.
    seen, ended = rows(
        mirror,
        "SELECT (SELECT last_seen_at FROM messages WHERE "
        f"user_id = {other} AND id = {lost})::VARCHAR, "
        "(SELECT ended_at FROM runs WHERE run_id = 1)::VARCHAR",
    )[0]
    assert seen == ended
    assert sync(mirror, server, mode="full").deleted == 0


def test_full_sync_marks_nothing_in_an_uncertified_list(mirror):
    world = World(seed=3, users=120, messages_per_user=(0, 250))
    long = next(each for each in world.user_ids() if len(world.message_ids(each)) > 150)
    # Nothing proves a list whose size is not told, and whose pages come short.
    with MockServer(world, dialect="documented total=null short_pages=some") as server:
        sync(mirror, server)
        world.remove_message(long, world.message_ids(long)[0])
        world.remove_user(world.user_ids()[60])
        report = sync(mirror, server, mode="full")
    assert report.certificate == "uncertified"
    assert long in report.uncertified_users
    assert (report.deleted, report.rows_asked) == (0, 0)
    assert marked(mirror) == ([], [])


def test_sync_clears_deleted_at_of_a_row_that_comes_back(mirror, scripted):
    messages = [{"id": 1, "body": "first"}, {"id": 2, "body": "second"}]
    counts: list[int] = []
    for shown in (messages, messages[:1], messages):
        users = {"limit": 99, "offset": 0, "total": 1, "users": [{"id": 5}]}
        page = {"limit": 99, "offset": 0, "total": len(shown), "messages": shown}
        server = scripted(answer(200, users), answer(200, page), answer(404))
        sync(mirror, server, mode="full")
        counts += rows(mirror, "SELECT count(*) FROM messages WHERE deleted_at IS NULL")[0]
    assert counts == [2, 1, 2]
    assert rows(mirror, "SELECT messages_updated, deleted FROM runs ORDER BY run_id") == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]


def test_full_sync_does_not_mark_a_row_that_became_a_reject(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    report = BatchSource(
        batch(
            [{"id": 2, "name": "Grace"}],
            [{"user_id": 1, "id": 11, "body": "one"}, {"user_id": 2, "id": 21}],
            [
                {"resource": "users", "user_id": 1, "id": 1},
                {"resource": "messages", "user_id": 1, "id": 12},
            ],
            swept="snapshot",
            lists={1: "snapshot", 2: "snapshot"},
        )
    ).sync_into(mirror.folder, "full")
    # User 3 and message 22 were not shown; user 1 and message 12 were, although they do not fit.
    assert report.deleted == 2
    assert marked(mirror) == ([3], [22])
    assert (report.rejects, report.users_updated, report.messages_updated) == (2, 0, 0)
    conversation = mirror.conversation(1)
    assert (conversation.user.name, [each.body for each in conversation]) == ("Ada", ["one", "two"])
    # They count as seen by this run.
    query = "SELECT count(*) FROM users, runs WHERE id = 1 AND last_seen_at = ended_at"
    assert rows(mirror, f"{query} AND run_id = 2") == [(1,)]


def test_row_that_was_missed_and_then_does_not_fit_is_not_gone(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    # An uncertified run that does not show them, then a full one where they do not fit.
    BatchSource(batch([{"id": 2}], swept="uncertified")).sync_into(mirror.folder)
    shown = batch(
        [{"id": 2}, {"id": 3}],
        [{"user_id": 1, "id": 11}],
        [
            {"resource": "users", "user_id": 1, "id": 1},
            {"resource": "messages", "user_id": 1, "id": 12},
        ],
        swept="snapshot",
        lists={1: "snapshot"},
    )
    assert BatchSource(shown).sync_into(mirror.folder, "full").deleted == 0


def test_row_that_was_gone_and_comes_back_unfit_loses_its_mark(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    without = batch([{"id": 1}, {"id": 2}], swept="snapshot")
    assert BatchSource(without).sync_into(mirror.folder, "full").deleted == 1
    back = batch(
        [{"id": 1}, {"id": 2}],
        rejects=[{"resource": "users", "user_id": 3, "id": 3}],
        swept="snapshot",
    )
    report = BatchSource(back).sync_into(mirror.folder, "full")
    assert (report.deleted, report.users_updated) == (0, 1)
    assert marked(mirror) == ([], [])


def test_full_sync_marks_no_user_if_a_record_has_no_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    shown = batch(
        [{"id": 1}, {"id": 2}],
        [{"user_id": 1, "id": 11}],
        [{"resource": "users"}],
        swept="snapshot",
        lists={1: "snapshot"},
    )
    assert BatchSource(shown).sync_into(mirror.folder, "full").deleted == 1
    assert marked(mirror) == ([], [12])


def test_full_sync_marks_no_message_of_a_list_with_a_record_without_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    shown = batch(
        [{"id": 1}, {"id": 2}, {"id": 3}],
        [{"user_id": 1, "id": 11}, {"user_id": 2, "id": 21}],
        [{"resource": "messages", "user_id": 1}],
        swept="snapshot",
        lists={1: "snapshot", 2: "snapshot"},
    )
    assert BatchSource(shown).sync_into(mirror.folder, "full").deleted == 1
    assert marked(mirror) == ([], [22])
    # The next run has no such record, and so marks what is gone.
    fits = batch(
        [{"id": 1}, {"id": 2}, {"id": 3}],
        [{"user_id": 1, "id": 11}],
        swept="snapshot",
        lists={1: "snapshot"},
    )
    assert BatchSource(fits).sync_into(mirror.folder, "full").deleted == 1
    assert marked(mirror) == ([], [12, 22])


def test_service_that_lists_a_row_in_another_shape_still_lists_it(mirror, scripted):
    fit = [{"id": 5, "name": "Ada"}], [{"id": 1, "body": "first"}, {"id": 2, "body": "second"}]
    odd = [{"id": 5, "name": ["Ada"]}], [{"id": 1, "body": "first"}, {"id": 2, "body": {}}]
    for shown_users, shown_messages in (fit, odd):
        users = {"limit": 99, "offset": 0, "total": 1, "users": shown_users}
        page = {"limit": 99, "offset": 0, "total": 2, "messages": shown_messages}
        report = sync(mirror, scripted(answer(200, users), answer(200, page)), mode="full")
    assert (report.certificate, report.rejects, report.deleted) == ("snapshot", 0, 0)
    assert rows(mirror, "SELECT name, extra FROM users") == [(None, '{"name":["Ada"]}')]
    held = mirror.conversation(5)
    assert [(each.body, each.extra) for each in held] == [("first", {}), (None, {"body": {}})]


def test_record_without_an_id_is_whatever_is_missing(mirror, scripted):
    named = [{"id": 1, "body": "first"}, {"id": 2, "body": "second"}]
    nameless = [{"id": 1, "body": "first"}, {"id": "2", "body": "second"}]
    users = {"limit": 99, "offset": 0, "total": 1, "users": [{"id": 5}]}
    for shown in (named, nameless):
        page = {"limit": 99, "offset": 0, "total": 2, "messages": shown}
        report = sync(mirror, scripted(answer(200, users), answer(200, page)), mode="full")
    assert (report.rejects, report.deleted) == (1, 0)


LINKED = batch(
    [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}],
    [{"user_id": 1, "id": 11, "body": "one"}, {"user_id": 2, "id": 21}],
    swept="linked",
    lists={1: "linked", 2: "snapshot"},
)


def test_full_sync_fetches_missing_rows_of_a_linked_list_by_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    # Message 12 is gone, and user 3 only moved; 22 is gone by the snapshot of its list.
    answers = (
        batch([{"id": 3}]),
        batch(gone=[{"resource": "messages", "user_id": 1, "id": 12}]),
    )
    source = BatchSource(LINKED, answers=answers)
    report = source.sync_into(mirror.folder, "full")
    assert sorted(source.asked, key=lambda each: each["id"]) == [
        {"resource": "users", "user_id": 3, "id": 3},
        {"resource": "messages", "user_id": 1, "id": 12},
        {"resource": "messages", "user_id": 2, "id": 22},
    ]
    assert marked(mirror) == ([], [12, 22])
    assert (report.deleted, report.rows_asked, report.users, report.users_updated) == (2, 2, 3, 0)
    assert rows(mirror, "SELECT deleted, rows_asked FROM runs WHERE run_id = 2") == [(2, 2)]
    seen = "SELECT run_id FROM {} AS row JOIN runs ON row.last_seen_at = ended_at WHERE row.id = {}"
    assert rows(mirror, seen.format("users", 3)) == [(2,)]
    assert rows(mirror, seen.format("messages", 12)) == [(1,)]
    # What was marked is not asked for again, and comes back when it is shown.
    again = BatchSource(LINKED, answers=[batch([{"id": 3}])])
    assert again.sync_into(mirror.folder, "full").deleted == 0
    assert [each["id"] for each in again.asked] == [3]
    BatchSource(HELD).sync_into(mirror.folder)
    assert marked(mirror) == ([], [])


def test_full_sync_marks_the_messages_of_a_deleted_user(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    shown = batch([{"id": 1}, {"id": 3}], swept="linked", lists={3: "snapshot"})
    answers = [batch(gone=[{"resource": "users", "user_id": 2, "id": 2}])]
    report = BatchSource(shown, answers=answers).sync_into(mirror.folder, "full")
    assert report.deleted == 1 + 2
    assert marked(mirror) == ([2], [21, 22])


def test_user_that_is_not_found_takes_its_messages_along_in_a_run_that_ends_early(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    # User 3 is not asked for in time, and message 12 is not in a list that is proved whole.
    shown = batch([{"id": 1}], HELD_OF_1, swept="linked", lists={1: "snapshot"})
    out_of_time = DeadlineExceededError("out of time")
    answers = [batch(gone=[{"resource": "users", "user_id": 2, "id": 2}]), out_of_time]
    with pytest.raises(DeadlineExceededError):
        BatchSource(shown, answers=answers).sync_into(mirror.folder, "full")
    assert marked(mirror) == ([2], [21, 22])
    assert rows(mirror, "SELECT state, deleted FROM runs WHERE run_id = 2") == [("partial", 3)]
    seen = "SELECT run_id FROM messages JOIN runs ON last_seen_at = ended_at WHERE id = 21"
    assert rows(mirror, seen) == [(1,)]
    last = BatchSource(answers=[batch([{"id": 3}])]).sync_into(mirror.folder)
    assert (last.state, last.run.deleted) == ("finished", 4)
    assert marked(mirror) == ([2], [12, 21, 22])


def test_full_sync_does_not_mark_a_row_without_an_answer_by_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    source = BatchSource(LINKED)
    assert source.sync_into(mirror.folder, "full").deleted == 1
    assert len(source.asked) == 3
    assert marked(mirror) == ([], [22])


def test_full_sync_resumes_fetching_by_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    gone = batch(gone=[{"resource": "messages", "user_id": 1, "id": 12}])
    first = BatchSource(LINKED, answers=[gone, ConnectError("the connection broke")])
    with pytest.raises(ConnectError):
        first.sync_into(mirror.folder, "full")
    second = BatchSource(answers=[batch([{"id": 3}])])
    report = second.sync_into(mirror.folder)
    assert second.done == [1, 2]
    assert sorted(each["id"] for each in second.asked) == [3, 22]
    assert (report.run.deleted, report.run.rows_asked) == (2, 2)
    assert marked(mirror) == ([], [12, 22])


def test_incremental_sync_fetches_nothing_by_id_and_marks_nothing(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    told = batch(gone=[{"resource": "messages", "user_id": 1, "id": 12}])
    source = BatchSource(LINKED, told)
    assert source.sync_into(mirror.folder).deleted == 0
    assert source.asked == []
    assert marked(mirror) == ([], [])


def test_full_sync_fetches_no_row_of_an_uncertified_list_by_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    shown = batch([{"id": 1}], swept="uncertified", lists={1: "uncertified"})
    source = BatchSource(shown)
    assert source.sync_into(mirror.folder, "full").deleted == 0
    assert source.asked == []


def test_linked_list_with_a_record_that_cannot_be_named_is_left_alone(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    nameless: list[Row] = [
        {"resource": "users"},
        {"resource": "messages", "user_id": 1},
    ]
    shown = batch(
        [{"id": 1}],
        [{"user_id": 1, "id": 11}],
        nameless,
        swept="linked",
        lists={1: "linked"},
    )
    source = BatchSource(shown)
    assert source.sync_into(mirror.folder, "full").deleted == 0
    assert source.asked == []


def test_full_sync_marks_a_row_that_the_walk_found_deleted(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    told = batch(gone=[{"resource": "messages", "user_id": 1, "id": 12}])
    source = BatchSource(LINKED, told, answers=[batch([{"id": 3}])])
    report = source.sync_into(mirror.folder, "full")
    assert sorted(each["id"] for each in source.asked) == [3, 22]
    assert report.deleted == 2
    assert marked(mirror) == ([], [12, 22])


MANY = [{"id": each} for each in range(1, 41)]
TALK: list[Row] = [{"user_id": 1, "id": each} for each in range(100, 140)]
ALL_PROVED: Any = {each["id"]: "snapshot" for each in MANY}


def test_full_sync_of_an_empty_users_list_marks_nobody_found_by_id(mirror):
    """A service that fails may answer that it has no users, which a snapshot takes for a fact."""
    BatchSource(batch(MANY, TALK, swept="snapshot", lists=ALL_PROVED)).sync_into(mirror.folder)
    empty = BatchSource(batch(swept="snapshot"), answers=[batch(MANY)])
    report = empty.sync_into(mirror.folder, "full")
    assert len(empty.asked) == 16
    assert {each["resource"] for each in empty.asked} == {"users"}
    assert report.deleted == 0
    assert report.certificate == "uncertified"
    reason = re.fullmatch(
        r"the list left out user (\d+), who was found by id", report.certificate_reason
    )
    assert int(reason[1]) in {each["id"] for each in empty.asked}
    assert marked(mirror) == ([], [])


def test_an_empty_list_of_users_is_believed_if_none_is_found_by_id(mirror):
    BatchSource(batch(MANY, TALK, swept="snapshot", lists=ALL_PROVED)).sync_into(mirror.folder)
    gone = batch(gone=[{"resource": "users", "user_id": each["id"], **each} for each in MANY])
    empty = BatchSource(batch(swept="snapshot"), answers=[gone])
    report = empty.sync_into(mirror.folder, "full")
    assert len(empty.asked) == 16
    assert (report.deleted, report.certificate) == (len(MANY) + len(TALK), "snapshot")


def test_empty_lists_of_messages_mark_none_if_one_is_found_by_id(mirror):
    BatchSource(batch(MANY, TALK, swept="snapshot", lists=ALL_PROVED)).sync_into(mirror.folder)
    shown = batch(MANY, swept="snapshot", lists=ALL_PROVED)
    emptied = BatchSource(shown, answers=[batch(messages=TALK)])
    report = emptied.sync_into(mirror.folder, "full")
    assert {each["resource"] for each in emptied.asked} == {"messages"}
    assert (report.deleted, report.lists_by_certificate) == (0, {"uncertified": len(MANY)})
    [[reason]] = rows(mirror, "SELECT DISTINCT reason FROM lists")
    assert re.fullmatch(
        r"most lists left out messages; message 1\d\d of user 1 was found by id", reason
    )
    assert marked(mirror) == ([], [])


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


def test_full_sync_marks_a_few_rows_without_fetching_by_id(mirror):
    BatchSource(batch(MANY, swept="snapshot", lists=ALL_PROVED)).sync_into(mirror.folder)
    fewer = BatchSource(batch(MANY[:25], swept="snapshot", lists=ALL_PROVED))
    assert fewer.sync_into(mirror.folder, "full").deleted == 15
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
