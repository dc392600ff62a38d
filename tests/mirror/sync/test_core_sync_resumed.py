"""A run that was killed goes on: what is committed is not asked for again. And single rows."""

import json
import random
from collections.abc import Iterator

import pytest

from backread import AuthenticationError, Client, PermissionDeniedError, ServerError
from backread.testing import Fault, MockServer, World
from helpers.api_rows import envelope, message, paged, user
from helpers.in_memory_mirror import InMemoryMirror, given
from helpers.scripted_server import Request, answer


@pytest.fixture
def world() -> World:
    return World(seed=11, users=80, messages_per_user=(0, 900))


@pytest.fixture
def mock(world: World) -> Iterator[MockServer]:
    with MockServer(world) as server:
        yield server


@pytest.fixture
def client(mock: MockServer) -> Iterator[Client]:
    with mock.client() as client:
        yield client


def test_a_killed_run_goes_on_where_it_was(world, mock, client):
    at_once = InMemoryMirror()
    whole = at_once.run(client)
    chance = random.Random(1)
    kills = 0
    grown: set[int] = set()
    mirror = InMemoryMirror()
    mock.forget()
    while not mirror.read(client, batches=chance.randrange(1, 3)):
        kills += 1
        # What comes meanwhile is not missed.
        user_id = chance.choice(sorted(mirror.users))
        world.add_messages(user_id, 3)
        grown.add(user_id)
    assert kills >= 3
    # Of each kill, the answers that were not committed: a batch, and what was under way.
    assert sum(mock.counts().values()) <= whole + kills * (64 + 20)
    assert mirror.kinds() == {"whole": 80}
    certificates = {user_id: row["certificate"] for user_id, row in mirror.lists.items()}
    # On a slow machine, a list may be half read when it grows.
    linked = {user_id for user_id, name in certificates.items() if name == "linked"}
    assert linked <= grown
    assert set(certificates.values()) <= {"snapshot", "counted", "linked"}
    mirror.run(client)
    assert mirror.differs(world) == []


def test_a_half_read_list_goes_on_at_its_page(scripted):
    messages = [
        message(number, created_at=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z")
        for number in range(1, 1_001)
    ]
    broken = True

    def service(request: Request) -> bytes:
        if request.path == "/external/users":
            return paged([user(1)])(request)
        if broken and int(request.query["offset"]) > 400:
            return answer(403, b"no")
        return paged(messages, key="messages")(request)

    server = scripted(service)
    client = Client(server.url, server.secret, server.vendor)
    mirror = InMemoryMirror()
    # What was read before the failure is given out ahead of it.
    with pytest.raises(PermissionDeniedError):
        mirror.read(client)
    assert len(mirror.messages) >= 300
    held = len(mirror.messages)
    broken = False
    before = len(server.requests)
    assert mirror.read(client)
    asked = [int(request.query["offset"]) for request in server.requests[before:]]
    assert min(asked) == held - 3
    assert len(mirror.messages) == 1_000
    row = mirror.lists[1]
    assert (row["rows"], row["certificate"], row["kind"]) == (1_000, "counted", "whole")
    # What the pages before the kill showed is known as well.
    ends = json.loads(row["state"])["ends"]
    assert (ends["grows"], ends["first_ids"], ends["last_ids"]) == (
        "end",
        [1, 2, 3, 4],
        [997, 998, 999, 1_000],
    )
    assert ends["unread_from"] == 0
    assert mirror.run(client) == 2


def test_a_half_swept_list_of_users_goes_on_and_nobody_is_left_out(scripted):
    everybody = [user(number) for number in range(1, 601)]
    breaks, broken = True, False

    def service(request: Request) -> bytes:
        nonlocal broken
        if request.path != "/external/users":
            return answer(200, envelope([], key="messages"))
        broken |= breaks and int(request.query["offset"]) > 300
        if broken:
            return answer(500, b"down")
        return paged(everybody)(request)

    server = scripted(service)
    client = Client(server.url, server.secret, server.vendor, max_retries=0)
    mirror = InMemoryMirror()
    with pytest.raises(ServerError):
        mirror.read(client)
    assert 200 <= len(mirror.users) < 600
    held = len(mirror.users)
    breaks = broken = False
    before = len(server.requests)
    assert mirror.read(client)
    asked = [request for request in server.requests[before:] if request.path == "/external/users"]
    assert min(int(request.query["offset"]) for request in asked) == held - 3
    assert mirror.swept.certificate == "linked"
    assert sorted(mirror.lists) == sorted(mirror.users) == list(range(1, 601))


def test_a_run_says_how_far_it_has_come(mock, client):
    mirror = InMemoryMirror()
    run = client._sync_run(mirror.known(), mode="incremental", max_staleness=None)
    nothing_yet = run.progress()
    assert (nothing_yet.requests, nothing_yet.lists_total, nothing_yet.lists_done) == (0, None, 0)
    done = 0
    for batch in given(run):
        mirror.commit(batch)
        now = run.progress()
        assert now.lists_done == len(mirror.done) >= done
        assert now.lists_total == now.users_total == 80
        done = now.lists_done
    assert done == 80
    assert run.progress().requests == sum(mock.counts().values())
    # A run that goes on counts what was done before.
    mirror.done.discard(min(mirror.done))
    again = client._sync_run(mirror.known(), mode="incremental", max_staleness=None)
    assert again.progress().lists_done == 79
    assert again.next_batch().lists.num_rows == 1
    assert (again.progress().lists_done, again.progress().lists_total) == (80, 80)


def test_rows_that_were_not_shown_are_asked_for_by_id(mock, client, world):
    [first, second, *_] = [each for each in world.user_ids() if len(world.message_ids(each)) > 1]
    gone, there = world.message_ids(first)[:2]
    world.remove_message(first, gone)
    world.remove_user(second)
    world.edit_message(first, there, body="edited")
    candidates = [
        {"resource": "messages", "user_id": first, "id": gone},
        {"resource": "messages", "user_id": first, "id": there},
        {"resource": "users", "user_id": None, "id": second},
        {"resource": "users", "user_id": None, "id": first},
        # Neither can be asked for: nothing is said of them.
        {"resource": "users", "user_id": None, "id": -1},
        {"resource": "messages", "user_id": -1, "id": 5},
    ]
    mock.on("message", user=first).fail(Fault.status(503), times=1)
    mirror = InMemoryMirror()
    requests = mirror.ask(client, candidates)
    assert requests == sum(mock.counts().values())
    assert mirror.messages[first, there]["body"] == "edited"
    assert list(mirror.messages) == [(first, there)]
    assert list(mirror.users) == [first]
    assert sorted(mirror.gone, key=str) == sorted([candidates[0], candidates[2]], key=str)


def test_what_was_found_before_a_failure_is_given_out(mock, world):
    chosen = world.user_ids()[:30]
    mock.on("user", user=chosen[-1]).fail(Fault.status(401))
    mirror = InMemoryMirror()
    with (
        mock.client(max_retries=0, max_concurrency=1) as client,
        pytest.raises(AuthenticationError),
    ):
        mirror.ask(client, [{"resource": "users", "user_id": None, "id": each} for each in chosen])
    assert sorted(mirror.users) == chosen[:-1]
