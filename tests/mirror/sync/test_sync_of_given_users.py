"""A sync of given users, alone and between the parts of a run over all users."""

import pytest

from backread import ConnectError
from backread.mirror import Mirror
from backread.mirror.sync import synchronize
from backread.testing import Dialect, MockServer, World
from helpers.mirrors import BatchSource, batch, ended, marked, rows

BROKEN = ConnectError("the connection broke")
USERS = [{"id": user_id} for user_id in (1, 2, 3)]
MESSAGES = [{"user_id": user_id, "id": user_id * 10 + 1} for user_id in (1, 2, 3)]
ALL = batch(USERS, MESSAGES, swept="snapshot", lists={1: "snapshot", 2: "snapshot", 3: "snapshot"})
HALF = batch(USERS, MESSAGES[:1], swept="snapshot", lists={1: "snapshot"})
REST = batch(messages=MESSAGES[1:], lists={2: "snapshot", 3: "snapshot"})


def test_given_users_are_read_beside_an_unfinished_run(mirror, monkeypatch):
    monkeypatch.setattr(synchronize, "SECONDS_BETWEEN_FILES", 0.0)
    with pytest.raises(ConnectError):
        BatchSource(HALF, BROKEN).sync_into(mirror.folder)
    unfinished = mirror.unfinished_run
    assert unfinished is not None
    named = batch([{"id": 3, "name": "Ada"}], MESSAGES[2:], lists={3: "snapshot"})
    given = BatchSource(named)
    report = given.sync_into(mirror.folder, users=(3, 3))
    assert given.users == [3]
    assert given.known is not None
    assert given.known["half_read"] == given.known["done"] == []
    assert (report.run_id, report.state, report.users_updated) == (2, "finished", 1)
    assert rows(mirror, "SELECT name FROM users WHERE id = 3") == [("Ada",)]
    with pytest.raises(ConnectError):
        BatchSource(named, BROKEN).sync_into(mirror.folder, users=(3,))
    # Its lists are not in the report of the next one.
    report = BatchSource(batch(lists={2: "snapshot"})).sync_into(mirror.folder, users=(2,))
    assert report.lists_by_kind == {"whole": 1}
    assert mirror.unfinished_run == unfinished
    following = BatchSource(REST)
    report = following.sync_into(mirror.folder)
    assert (report.run_id, report.state) == (1, "finished")
    assert following.done == [1]
    assert mirror.unfinished_run is None
    assert marked(mirror) == ([], [])


@pytest.mark.parametrize("end", ["finished", "partial", "broken off"])
def test_given_user_whom_the_service_does_not_know_is_deleted_however_the_run_ends(mirror, end):
    BatchSource(ALL).sync_into(mirror.folder)
    gone = batch(gone=[{"resource": "users", "user_id": 2, "id": 2}])
    if end == "broken off":
        with pytest.raises(ConnectError):
            BatchSource(gone, BROKEN).sync_into(mirror.folder, users=(2, 3))
        BatchSource(batch(USERS[:1])).sync_into(mirror.folder, users=(1,))
    else:
        source = BatchSource(gone, ended_early=end == "partial")
        report = source.sync_into(mirror.folder, users=(2, 3))
        assert (report.deleted, report.unknown_users) == (2, (2,))
    assert marked(mirror) == ([2], [21])


@pytest.mark.parametrize(("kind", "state"), [("whole", None), ("end", "{}")])
def test_whole_list_that_a_run_of_given_users_read_is_read_again(mirror, kind, state):
    """It records nothing as missed; by what it knows, only the end of the list would be read."""
    BatchSource(ALL).sync_into(mirror.folder)
    BatchSource(batch(lists=[ended(1, kind=kind)])).sync_into(mirror.folder, users=(1,))
    following = BatchSource(ALL)
    following.sync_into(mirror.folder)
    assert following.known is not None
    states = {each["user_id"]: each["state"] for each in following.known["lists"]}
    assert states == {1: state, 2: "{}", 3: "{}"}


def complete(mirror: Mirror, world: World) -> bool:
    """Whether the mirror shows all messages of the service, and no others, as there."""
    held = rows(mirror, "SELECT user_id, id FROM messages WHERE deleted_at IS NULL ORDER BY ALL")
    there = [(user, each) for user in world.user_ids() for each in world.message_ids(user)]
    return held == sorted(there)


@pytest.mark.parametrize("mode", ["full", "incremental"])
@pytest.mark.parametrize("first", [True, False])
def test_sync_of_given_users_between_two_parts_of_a_run_loses_nothing(mirror, mode, first):
    world = World(seed=11, users=60, messages_per_user=5)
    with MockServer(world) as mock, mock.client(max_concurrency=1) as client:
        if not first:
            mirror.sync(client)
        assert mirror.sync(client, mode=mode, max_requests=30).partial
        assert mirror.sync(client, users=world.user_ids()[:3], max_requests=4).partial
        mirror.sync(client, mode=mode)
        for _ in range(2):
            assert mirror.sync(client, mode="full").deleted == 0
            assert marked(mirror) == ([], [])
            assert complete(mirror, world)


@pytest.mark.parametrize("order", ["id", "newest"])
def test_a_position_before_it_proves_nothing_of_what_was_deleted_meanwhile(mirror, order):
    world = World(seed=5, users=1, messages_per_user=600)
    [user] = world.user_ids()
    dialect = Dialect("documented", order=order)
    with MockServer(world, dialect=dialect) as mock, mock.client(max_concurrency=1) as client:
        mirror.sync(client, mode="full", max_requests=4)
        for (message,) in rows(mirror, "SELECT id FROM messages ORDER BY id LIMIT 20"):
            world.remove_message(user, message)
        mirror.sync(client, users=[user], max_requests=2)
        world.add_messages(user, 20)
        report = mirror.sync(client, mode="full")
        assert complete(mirror, world) or not {"snapshot", "counted"} & {
            *report.lists_by_certificate
        }
        mirror.sync(client, mode="full")
        assert complete(mirror, world)
