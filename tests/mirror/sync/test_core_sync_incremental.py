"""What a run asks for that knows the runs before it: little, and nothing is missed."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from backread import Client
from backread.testing import Dialect, MockServer, World
from helpers.api_rows import envelope, message, paged, user
from helpers.in_memory_mirror import InMemoryMirror
from helpers.scripted_server import Request, answer

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
def mirror(client: Client) -> InMemoryMirror:
    """What one run over the world left behind."""
    mirror = InMemoryMirror()
    mirror.run(client)
    return mirror


def longest(world: World) -> int:
    """The user with the most messages."""
    return max(world.user_ids(), key=lambda user_id: len(world.message_ids(user_id)))


def asked(mock: MockServer, user_id: int) -> list[int | None]:
    """The offsets at which a user's messages were asked for since `forget`."""
    return [entry.offset for entry in mock.calls("messages", user=user_id)]


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
    held = InMemoryMirror()
    for there, kind in [(True, "whole"), (False, "gone"), (True, "whole")]:  # noqa: B007
        held.run(client)
        assert held.lists[2]["kind"] == kind
        assert held.lists[1]["kind"] == "whole"
    assert held.lists[2]["certificate"] == "snapshot"


def test_what_is_known_must_be_readable(client, mirror):
    known = mirror.known()
    known.lists = known.forgotten
    with pytest.raises(ValueError, match=r"cannot be read: .*no column"):
        client._sync_run(known, mode="incremental", max_staleness=None)
    for wrong in ({"mode": "half"}, {"max_staleness": -1.0}):
        arguments: dict[str, Any] = {"mode": "full", "max_staleness": None} | wrong
        with pytest.raises(ValueError, match=r"no such mode|max_staleness"):
            client._sync_run(mirror.known(), **arguments)
