"""What a run asks for that knows the runs before it: little, and nothing is missed."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from backread import Client
from backread.testing import Dialect, MockServer, World
from canned import envelope, message, paged, user
from remembered import Remembered
from scripted_server import Request, answer

USERS = 60
# Every third list is longer than a page.
MESSAGES = (0, 500)


@pytest.fixture
def world() -> World:
    return World(seed=7, users=USERS, messages_per_user=MESSAGES)


@pytest.fixture(params=["id", "newest"])
def mock(request: pytest.FixtureRequest, world: World) -> Iterator[MockServer]:
    """A service that shows its lists from one end or from the other."""
    with MockServer(world, dialect=Dialect("documented", order=request.param)) as server:
        yield server


@pytest.fixture
def client(mock: MockServer) -> Iterator[Client]:
    with mock.client() as client:
        yield client


@pytest.fixture
def mirror(client: Client) -> Remembered:
    """What one run over the world left behind."""
    mirror = Remembered()
    mirror.run(client)
    return mirror


def longest(world: World) -> int:
    """The user with the most messages."""
    return max(world.user_ids(), key=lambda user_id: len(world.message_ids(user_id)))


def asked(mock: MockServer, user_id: int) -> list[int | None]:
    """The offsets at which a user's messages were asked for since `forget`."""
    return [entry.offset for entry in mock.calls("messages", user=user_id)]


def test_a_first_run_holds_all_and_proves_it(world, client, mirror):
    assert mirror.differs(world) == []
    assert mirror.kinds() == {"whole": USERS}
    assert {row["certificate"] for row in mirror.lists.values()} == {"snapshot", "counted"}
    rows = {user_id: row["rows"] for user_id, row in mirror.lists.items()}
    assert rows == {user_id: len(world.message_ids(user_id)) for user_id in world.user_ids()}


def test_without_a_change_a_user_costs_one_request(world, mock, client, mirror):
    for _ in range(2):
        mock.forget()
        requests = mirror.run(client)
        assert requests == sum(mock.counts().values())
        assert requests <= (USERS + USERS / 99) * 1.01
        long = sum(len(world.message_ids(user_id)) > 90 for user_id in world.user_ids())
        assert mirror.kinds() == {"end": long, "whole": USERS - long}
        assert "uncertified" not in {row["certificate"] for row in mirror.lists.values()}
        # What was swept once stays swept.
        assert all(row["swept_at"] for row in mirror.lists.values())
    assert mirror.differs(world) == []


@pytest.mark.parametrize("seed", range(2))
def test_what_changed_is_not_missed(seed, world, client, mirror):
    chance = random.Random(seed)
    for _ in range(3):
        for user_id in chance.sample(world.user_ids(), 12):
            match chance.randrange(5):
                case 0:
                    world.add_messages(user_id, chance.choice([1, 9, 10, 30, 250]))
                case 1:
                    for message_id in world.message_ids(user_id)[-80:]:
                        world.edit_message(
                            user_id, message_id, read_by_user=True, read_by_operator=True
                        )
                case 2:
                    world.add_messages(world.add_users(1)[0], chance.choice([0, 3, 150]))
                case 3:
                    world.edit_user(user_id, name="Ada")
                case _:
                    world.remove_user(user_id)
        mirror.run(client)
        assert mirror.differs(world) == []
        assert {mirror.users[each]["name"] for each in world.user_ids()} == {
            world.user(each)["name"] for each in world.user_ids()
        }
        # A list that grew by pages was read on, not from its start.
        assert "end" in mirror.kinds()


def test_news_of_more_than_a_page_is_read_on_from_the_end(world, mock, client, mirror):
    user_id = longest(world)
    world.add_messages(user_id, 250)
    mock.forget()
    mirror.run(client)
    assert mirror.differs(world) == []
    assert mirror.lists[user_id]["kind"] == "end"
    assert len(asked(mock, user_id)) <= 4


def test_a_message_that_is_gone_makes_the_list_be_swept(world, mock, client, mirror):
    user_id = longest(world)
    before = world.message_ids(user_id)
    world.remove_message(user_id, before[len(before) // 2])
    world.add_messages(user_id, 1)
    mock.forget()
    mirror.run(client)
    row = mirror.lists[user_id]
    assert (row["kind"], row["certificate"], row["rows"]) == ("whole", "counted", len(before))
    assert row["requests"] == len(asked(mock, user_id))
    assert mirror.differs(world) == []
    # The next run goes by what that sweep proved.
    mirror.run(client)
    assert mirror.lists[user_id]["kind"] == "end"


@pytest.mark.parametrize("not_found", [404, 410])
def test_a_user_who_is_gone_and_one_who_came_back(scripted, not_found):
    there = True

    def service(request: Request) -> bytes:
        if request.path == "/external/users":
            return paged([user(1), user(2)])(request)
        if "/users/2" in request.path and not there:
            return answer(not_found, b"gone")
        return answer(200, envelope([message(7)], key="messages"))

    server = scripted(service)
    client = Client(server.url, server.secret, server.vendor)
    held = Remembered()
    for there, kind in [(True, "whole"), (False, "gone"), (True, "whole")]:  # noqa: B007
        held.run(client)
        assert held.lists[2]["kind"] == kind
        assert held.lists[1]["kind"] == "whole"
    assert held.lists[2]["certificate"] == "snapshot"


@pytest.mark.parametrize(
    "habits", ["order=ties", "order=shuffled", "order=ties over_limit=clamp max_limit=40"]
)
def test_where_nothing_is_in_order_every_list_is_swept(habits):
    world = World(seed=7, users=12, messages_per_user=(0, 200))
    with MockServer(world, dialect=f"documented {habits}") as mock, mock.client() as client:
        mirror = Remembered()
        for _ in range(2):
            mirror.run(client)
            assert mirror.kinds() == {"whole": 12}
            assert mirror.differs(world) == []
            world.add_messages(longest(world), 2)


@pytest.mark.parametrize("total", ["null", "low", "high", "capped total_cap=100"])
def test_a_total_that_is_not_the_lists_proves_no_growing_end(total):
    world = World(seed=7, users=12, messages_per_user=(0, 200))
    long = [each for each in world.user_ids() if len(world.message_ids(each)) > 100]
    with MockServer(world, dialect=f"documented total={total}") as mock, mock.client() as client:
        mirror = Remembered()
        for _ in range(2):
            mirror.run(client)
            assert {mirror.lists[each]["kind"] for each in long} == {"whole"}
            # Where a list ends is proved without its total; how it grows is not.
            assert {mirror.lists[each]["certificate"] for each in long} == {"linked"}
            assert mirror.differs(world) == []
            world.add_messages(long[0], 2)


@pytest.mark.parametrize("habit", ["over_limit=clamp max_limit=40", "short_pages=some"])
def test_smaller_pages_are_no_reason_to_read_all_again(habit, world):
    with MockServer(world, dialect=f"documented {habit}") as mock, mock.client() as client:
        mirror = Remembered()
        mirror.run(client)
        assert mirror.differs(world) == []
        world.add_messages(longest(world), 5)
        mirror.run(client)
        assert mirror.differs(world) == []
        assert mirror.lists[longest(world)]["kind"] == "end"


def test_a_list_that_was_swept_long_ago_is_swept_again(world, client, mirror):
    mirror.run(client, max_staleness=3600.0)
    assert "end" in mirror.kinds()
    mirror.run(client, max_staleness=0.0)
    assert mirror.kinds() == {"whole": USERS}


def test_a_full_run_sweeps_every_list(client, mirror):
    mirror.run(client, mode="full")
    assert mirror.kinds() == {"whole": USERS}


def test_users_with_news_come_first_and_then_those_not_looked_at_for_longest(world, mock):
    mirror = Remembered()
    with mock.client(max_concurrency=1) as client:
        mirror.run(client)
        looked_at = sorted(mirror.lists, key=lambda each: (mirror.lists[each]["ended_at"], each))
        chance = random.Random(3)
        changed = sorted(chance.sample(world.user_ids(), 5))
        for user_id in changed:
            world.edit_user(user_id, online_at="2031-01-01T00:00:00.000Z")
        [new] = world.add_users()
        mock.forget()
        mirror.run(client)
    order = list(dict.fromkeys(entry.user for entry in mock.calls("messages")))
    assert sorted(order[:6], key=str) == sorted([*changed, new], key=str)
    assert order[6:] == [user_id for user_id in looked_at if user_id not in changed]


def test_what_is_known_must_be_readable(client, mirror):
    known = mirror.known()
    known.lists = known.done
    with pytest.raises(ValueError, match=r"cannot be read: .*no column"):
        client._sync_run(known, mode="incremental", max_staleness=None)
    for wrong in ({"mode": "half"}, {"max_staleness": -1.0}):
        arguments: dict[str, Any] = {"mode": "full", "max_staleness": None} | wrong
        with pytest.raises(ValueError, match=r"no such mode|max_staleness"):
            client._sync_run(mirror.known(), **arguments)
