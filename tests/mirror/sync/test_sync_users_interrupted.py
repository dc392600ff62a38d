"""A run over given users that ends early, between others: later runs lose nothing by it."""

import pytest

from backread import AuthenticationError, Client
from backread.mirror import Mirror, SyncProgress
from backread.testing import Dialect, MockServer, World
from helpers.mirrors import marked, rows

USERS = 60


class InterruptedAtCommitError(Exception):
    """What a callback raises to end a run."""


def after(commits: int):
    """A callback that interrupts a run."""
    left = commits

    def interrupt(_: SyncProgress) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            raise InterruptedAtCommitError

    return interrupt


def interrupted(mirror: Mirror, client: Client, commits: int, **options) -> None:
    with pytest.raises(InterruptedAtCommitError):
        mirror.sync(client, on_progress=after(commits), **options)


def complete(mirror: Mirror, world: World) -> bool:
    """Whether the mirror shows all messages of the service, and no others, as there."""
    held = rows(mirror, "SELECT user_id, id FROM messages WHERE deleted_at IS NULL ORDER BY ALL")
    there = [(user, each) for user in world.user_ids() for each in world.message_ids(user)]
    return held == sorted(there)


@pytest.fixture
def world() -> World:
    return World(seed=11, users=USERS, messages_per_user=5)


@pytest.fixture
def mock(world: World):
    with MockServer(world) as server:
        yield server


@pytest.fixture
def client(mock: MockServer):
    with mock.client(max_concurrency=1) as client:
        yield client


@pytest.mark.parametrize("mode", ["full", "incremental"])
def test_sync_of_given_users_between_two_parts_of_a_run_over_all(tmp_path, world, client, mode):
    mirror = Mirror(tmp_path)
    mirror.sync(client)
    interrupted(mirror, client, 3, mode=mode)
    interrupted(mirror, client, 2, users=world.user_ids()[:3])
    mirror.sync(client, mode=mode)
    for _ in range(2):
        report = mirror.sync(client, mode="full")
        assert report.deleted == 0
        assert marked(mirror) == ([], [])
        assert complete(mirror, world)


@pytest.mark.parametrize("mode", ["full", "incremental"])
def test_sync_of_given_users_before_a_killed_first_run_over_all(
    tmp_path, mock, world, client, mode
):
    mirror = Mirror(tmp_path)
    with Client(mock.url, "wrong", mock.vendor) as other, pytest.raises(AuthenticationError):
        mirror.sync(other, users=world.user_ids()[:1])
    interrupted(mirror, client, 4, mode=mode, publish=False)
    mirror.sync(client, mode=mode)
    assert complete(mirror, world)
    assert mirror.sync(client, mode="full").deleted == 0
    assert complete(mirror, world)


def test_a_deletion_after_it_is_marked_by_the_first_run_over_all(tmp_path, world, client):
    mirror = Mirror(tmp_path)
    user = world.user_ids()[0]
    interrupted(mirror, client, 2, users=[user], publish=False)
    world.remove_message(user, world.message_ids(user)[0])
    mirror.sync(client, mode="full", publish=False)
    mirror.sync(client, mode="full")
    assert complete(mirror, world)


def test_lists_of_given_users_are_not_in_the_next_sync_report(tmp_path, world, client):
    mirror = Mirror(tmp_path)
    mirror.sync(client)
    users = world.user_ids()
    interrupted(mirror, client, 2, users=users[:3])
    report = mirror.sync(client, users=[users[3]])
    assert sum(report.lists_by_certificate.values()) == 1


def test_a_user_who_comes_back_has_all_messages_again(tmp_path):
    world = World(seed=5, users=4, messages_per_user=3_000)
    before = world.snapshot()
    with MockServer(world) as mock, mock.client(max_concurrency=1) as client:
        mirror = Mirror(tmp_path)
        mirror.sync(client)
        mirror.sync(client, mode="full", max_requests=70)
        [(user,)] = rows(mirror, "SELECT arg_max(user_id, run_id) FROM lists")
        world.remove_user(user)
        assert mirror.sync(client, mode="full").deleted > 3_000
        world.restore(before)
        mirror.sync(client)
        assert marked(mirror) == ([], [])
        assert complete(mirror, world)


@pytest.mark.parametrize("order", ["id", "newest"])
def test_a_position_before_it_proves_nothing_of_what_was_deleted_meanwhile(tmp_path, order):
    world = World(seed=5, users=1, messages_per_user=600)
    [user] = world.user_ids()
    dialect = Dialect("documented", order=order)
    with MockServer(world, dialect=dialect) as mock, mock.client(max_concurrency=1) as client:
        mirror = Mirror(tmp_path)
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


def test_a_user_read_between_two_parts_of_a_run_that_misses_them_is_not_deleted(
    tmp_path, world, client
):
    """The messages were missed by the later part; what the run in between knew would hide that."""
    mirror = Mirror(tmp_path)
    mirror.sync(client)
    mirror.sync(client, max_requests=40)
    [(user,)] = rows(mirror, "SELECT arg_min(user_id, user_id) FROM lists WHERE run_id = 2")
    mirror.sync(client, users=[user])
    before = world.snapshot()
    world.remove_user(user)
    while mirror.sync(client).partial:
        pass
    world.restore(before)
    assert mirror.sync(client, mode="full").deleted == 0
    assert marked(mirror) == ([], [])
    assert complete(mirror, world)


@pytest.mark.parametrize("end", ["partial", "interrupted"])
def test_messages_of_a_given_user_who_is_gone_are_marked_however_the_run_ends(
    tmp_path, world, client, end
):
    mirror = Mirror(tmp_path)
    mirror.sync(client)
    gone, *others = world.user_ids()
    messages = world.message_ids(gone)
    world.remove_user(gone)
    if end == "partial":
        assert mirror.sync(client, users=[gone, *others], max_requests=9).partial
    else:
        interrupted(mirror, client, 3, users=[gone, *others])
        mirror.sync(client)
    assert marked(mirror) == ([gone], messages)


def test_a_message_that_is_gone_is_not_seen_by_the_ends_of_lists(tmp_path):
    world = World(seed=5, users=2, messages_per_user=250)
    with MockServer(world) as mock, mock.client(max_concurrency=1) as client:
        mirror = Mirror(tmp_path)
        mirror.sync(client)
        user = world.user_ids()[0]
        message = world.message_ids(user)[10]
        world.remove_message(user, message)
        mirror.sync(client, users=[user])
        seen = f"SELECT last_seen_at FROM messages WHERE user_id = {user} AND id = {message}"
        [before] = rows(mirror, seen)
        for _ in range(2):
            world.add_messages(user, 1)
            mirror.sync(client)
        assert rows(mirror, seen) == [before]
