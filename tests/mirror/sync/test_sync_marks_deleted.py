"""Which rows a full sync marks as deleted, by what is proved of their lists."""

from typing import Any

import pytest

from backread import ConnectError, DeadlineExceededError
from backread.testing import MockServer, World
from helpers.api_rows import paged
from helpers.mirrors import BatchSource, Row, batch, marked, rows, sync

pytest.importorskip("duckdb")


USERS: list[Row] = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Grace"}, {"id": 3}]
OF_1: list[Row] = [{"user_id": 1, "id": 11, "body": "one"}, {"user_id": 1, "id": 12, "body": "two"}]
OF_2: list[Row] = [{"user_id": 2, "id": 21}, {"user_id": 2, "id": 22}]
HELD = batch(
    USERS, OF_1 + OF_2, swept="snapshot", lists={1: "snapshot", 2: "snapshot", 3: "snapshot"}
)
# Neither user 3 nor messages 12 and 22.
LINKED = batch(
    USERS[:2],
    [OF_1[0], OF_2[0]],
    swept="linked",
    lists={1: "linked", 2: "snapshot"},
)
UNFIT_3 = {"resource": "users", "user_id": 3, "id": 3}
UNFIT_12 = {"resource": "messages", "user_id": 1, "id": 12}
NO_ID_USER = {"resource": "users"}
NO_ID_OF_1 = {"resource": "messages", "user_id": 1}


def gone(resource: str, user_id: int, row_id: int) -> Any:
    """The answer that there is no such row."""
    return batch(gone=[{"resource": resource, "user_id": user_id, "id": row_id}])


@pytest.mark.parametrize(
    ("shown", "answers", "asked", "deleted"),
    [
        pytest.param([LINKED], [], [3, 12, 22], ([], [22]), id="no answer by id"),
        pytest.param(
            [LINKED],
            [batch(USERS[2:]), gone("messages", 1, 12)],
            [3, 12, 22],
            ([], [12, 22]),
            id="answers by id",
        ),
        pytest.param(
            [LINKED, gone("messages", 1, 12)],
            [batch(USERS[2:])],
            [3, 22],
            ([], [12, 22]),
            id="found deleted while the list was read",
        ),
        pytest.param(
            [batch([USERS[0], USERS[2]], swept="linked", lists={3: "snapshot"})],
            [gone("users", 2, 2)],
            [2],
            ([2], [21, 22]),
            id="a deleted user with all messages",
        ),
        pytest.param(
            [batch(USERS[:1], swept="uncertified", lists={1: "uncertified"})],
            [],
            [],
            ([], []),
            id="uncertified",
        ),
        pytest.param(
            [
                batch(
                    USERS[1:2],
                    [OF_1[0], OF_2[0]],
                    [{"resource": "users", "user_id": 1, "id": 1}, UNFIT_12],
                    swept="snapshot",
                    lists={1: "snapshot", 2: "snapshot"},
                )
            ],
            [],
            [22],
            ([3], [22]),
            id="shown rows that do not fit",
        ),
        pytest.param(
            [batch(USERS[:2], OF_1[:1], [NO_ID_USER], swept="snapshot", lists={1: "snapshot"})],
            [],
            [12],
            ([], [12]),
            id="a user without an id may be any",
        ),
        pytest.param(
            [
                batch(
                    USERS,
                    [OF_1[0], OF_2[0]],
                    [NO_ID_OF_1],
                    swept="snapshot",
                    lists={1: "snapshot", 2: "snapshot"},
                )
            ],
            [],
            [22],
            ([], [22]),
            id="a message without an id may be any of its list",
        ),
        pytest.param(
            [
                batch(
                    USERS[:1],
                    OF_1[:1],
                    [NO_ID_USER, NO_ID_OF_1],
                    swept="linked",
                    lists={1: "linked"},
                )
            ],
            [],
            [],
            ([], []),
            id="linked lists with records without an id",
        ),
    ],
)
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
    source = BatchSource(LINKED, answers=[batch(USERS[2:]), gone("messages", 1, 12)])
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
    again = BatchSource(LINKED, answers=[batch(USERS[2:])])
    assert again.sync_into(mirror.folder, "full").deleted == 0
    assert [each["id"] for each in again.asked] == [3]


def test_incremental_sync_fetches_nothing_by_id_and_marks_nothing(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    source = BatchSource(LINKED, gone("messages", 1, 12))
    assert source.sync_into(mirror.folder).deleted == 0
    assert source.asked == []
    assert marked(mirror) == ([], [])


def test_row_that_does_not_fit_stays_as_it_was_and_counts_as_seen(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    # An uncertified run does not show them, then they do not fit.
    BatchSource(batch(USERS[1:2], swept="uncertified")).sync_into(mirror.folder)
    unfit = [{"resource": "users", "user_id": 1, "id": 1}, UNFIT_12]
    shown = batch(USERS[1:], OF_1[:1], unfit, swept="snapshot", lists={1: "snapshot"})
    report = BatchSource(shown).sync_into(mirror.folder, "full")
    assert (report.deleted, report.rejects) == (0, 2)
    assert (report.users_updated, report.messages_updated) == (0, 0)
    conversation = mirror.conversation(1)
    assert (conversation.user.name, [each.body for each in conversation]) == ("Ada", ["one", "two"])
    newest = "SELECT count(*) FROM users, runs WHERE id = 1 AND last_seen_at = ended_at"
    assert rows(mirror, f"{newest} AND run_id = 3") == [(1,)]


def test_deleted_row_that_comes_back_unfit_is_not_deleted(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    without = batch(USERS[:2], swept="snapshot")
    assert BatchSource(without).sync_into(mirror.folder, "full").deleted == 1
    back = batch(USERS[:2], rejects=[UNFIT_3], swept="snapshot")
    report = BatchSource(back).sync_into(mirror.folder, "full")
    assert (report.deleted, report.users_updated) == (0, 1)
    assert marked(mirror) == ([], [])


def test_deleted_user_takes_all_messages_along_in_a_run_that_ends_early(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    # User 3 is not asked for in time, and message 12 is not in a list that is proved whole.
    shown = batch(USERS[:1], OF_1[:1], swept="linked", lists={1: "snapshot"})
    answers = [gone("users", 2, 2), DeadlineExceededError("out of time")]
    with pytest.raises(DeadlineExceededError):
        BatchSource(shown, answers=answers).sync_into(mirror.folder, "full")
    assert marked(mirror) == ([2], [21, 22])
    assert rows(mirror, "SELECT state, deleted FROM runs WHERE run_id = 2") == [("partial", 3)]
    seen = "SELECT run_id FROM messages JOIN runs ON last_seen_at = ended_at WHERE id = 21"
    assert rows(mirror, seen) == [(1,)]
    last = BatchSource(answers=[batch(USERS[2:])]).sync_into(mirror.folder)
    assert (last.state, last.run.deleted) == ("finished", 4)
    assert marked(mirror) == ([2], [12, 21, 22])


def test_full_sync_resumes_fetching_by_id(mirror):
    BatchSource(HELD).sync_into(mirror.folder)
    first = BatchSource(
        LINKED, answers=[gone("messages", 1, 12), ConnectError("the connection broke")]
    )
    with pytest.raises(ConnectError):
        first.sync_into(mirror.folder, "full")
    second = BatchSource(answers=[batch(USERS[2:])])
    report = second.sync_into(mirror.folder)
    assert second.done == [1, 2]
    assert sorted(each["id"] for each in second.asked) == [3, 22]
    assert (report.run.deleted, report.run.rows_asked) == (2, 2)
    assert marked(mirror) == ([], [12, 22])


@pytest.mark.parametrize(
    ("name", "second", "rejects"),
    [(["Ada"], {"id": 2, "body": {}}, 0), ("Ada", {"id": "2", "body": "second"}, 1)],
    ids=["another shape", "no id"],
)
def test_service_that_shows_a_row_in_another_shape_still_lists_it(
    mirror, scripted, name, second, rejects
):
    shown = {"users": [{"id": 5, "name": "Ada"}], "messages": [{"id": 1}, {"id": 2}]}

    def service(request: Any) -> Any:
        key = request.path.rsplit("/", 1)[-1]
        return paged(shown[key], key=key)(request)

    server = scripted(service)
    sync(mirror, server)
    shown = {"users": [{"id": 5, "name": name}], "messages": [{"id": 1}, second]}
    report = sync(mirror, server, mode="full")
    assert (report.certificate, report.rejects, report.deleted) == ("snapshot", rejects, 0)
    assert marked(mirror) == ([], [])


def test_full_sync_marks_deleted_rows_and_incremental_does_not(mirror):
    world = World(seed=3, users=40, messages_per_user=(0, 250))
    short = [each for each in world.user_ids() if 2 <= len(world.message_ids(each)) <= 99]
    deleted, other = short[:2]
    messages, lost = world.message_ids(deleted), world.message_ids(other)[0]
    with MockServer(world) as server:
        sync(mirror, server)
        world.remove_message(other, lost)
        world.remove_user(deleted)
        assert sync(mirror, server).deleted == 0
        assert marked(mirror) == ([], [])
        assert sync(mirror, server, mode="full").deleted == 2 + len(messages)
        assert marked(mirror) == ([deleted], sorted([*messages, lost]))
        assert rows(mirror, f"SELECT * FROM conversations WHERE user_id = {deleted}") == []
        assert lost not in {each.id for each in mirror.conversation(other)}
        # It was last seen by the first run, and the two after it did not show it.
        seen = f"SELECT last_seen_at FROM messages WHERE user_id = {other} AND id = {lost}"
        assert rows(mirror, seen) == rows(mirror, "SELECT ended_at FROM runs WHERE run_id = 1")
        assert sync(mirror, server, mode="full").deleted == 0
