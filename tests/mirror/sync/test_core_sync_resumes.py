"""A run that a kill, an error or its budget ended goes on: nothing is read again or missed."""

import json
import random
from datetime import timedelta

import pytest

from backread import (
    Client,
    DeadlineExceededError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
)
from backread.testing import Fault, MockServer, World
from helpers.api_rows import envelope, message, paged, user
from helpers.in_memory_mirror import InMemoryMirror, given
from helpers.scripted_server import Request, answer

pytest.importorskip("pyarrow")


def test_a_killed_run_goes_on_where_it_was():
    world = World(seed=11, users=80, messages_per_user=(0, 900))
    chance = random.Random(1)
    kills = 0
    grown: set[int] = set()
    mirror = InMemoryMirror()
    with MockServer(world) as mock, mock.client() as client:
        whole = InMemoryMirror().run(client)
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
    # It keeps its position although nothing is read of it this time.
    with pytest.raises(PermissionDeniedError):
        mirror.read(client)
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


def test_a_run_says_how_far_it_has_come():
    mirror = InMemoryMirror()
    with MockServer(World(seed=11, users=80, messages_per_user=(0, 900))) as mock:
        client = mock.client()
        run = client._sync_run(mirror.known(), mode="incremental", max_staleness=None)
        before = run.progress()
        assert (before.requests, before.lists_total, before.lists_done) == (0, None, 0)
        for batch in given(run):
            mirror.commit(batch)
            now = run.progress()
            assert now.lists_done == len(mirror.done)
            assert now.lists_total == now.users_total == 80
        assert now.lists_done == 80
        assert run.progress().requests == sum(mock.counts().values())
        # A run that goes on counts what was done before.
        mirror.done.discard(min(mirror.done))
        again = client._sync_run(mirror.known(), mode="incremental", max_staleness=None)
        assert again.progress().lists_done == 79
        assert again.next_batch().lists.num_rows == 1
        assert (again.progress().lists_done, again.progress().lists_total) == (80, 80)


@pytest.mark.parametrize("seed", range(6))
def test_nights_of_any_budget_read_everything_once(seed):
    chance = random.Random(seed)
    world = World(seed=seed, users=60, messages_per_user=(0, 700))
    with MockServer(world) as server, server.client() as client:
        whole = InMemoryMirror().run(client)
        mirror = InMemoryMirror()
        nights, ended = 0, False
        while not ended:
            budget = chance.randrange(12, 120)
            server.forget()
            before = mirror.requests
            ended = mirror.read(client, max_requests=budget)
            sent = sum(server.counts().values())
            assert sent == mirror.requests - before <= budget
            nights += 1
            assert nights < 100, "the nights make no progress"
    assert nights > 1
    # `commit` refuses a list that ends twice in a run.
    assert sorted(mirror.done) == world.user_ids()
    assert mirror.differs(world) == []
    assert mirror.requests <= 1.05 * whole + 3 * nights


def test_retries_count_and_one_without_budget_leaves_its_list_half_read():
    world = World(seed=4, users=1, messages_per_user=(450, 450))
    [user_id] = world.user_ids()
    with MockServer(world) as server:
        server.clock.virtual()
        server.on("messages", user=user_id, offset=96).fail(Fault.status(500))
        with server.client() as client:
            mirror = InMemoryMirror()
            assert not mirror.read(client, max_requests=4)
            assert mirror.requests == sum(server.counts().values()) == 4
            assert mirror.half_read == {user_id}
            assert len(mirror.messages) == 99
            assert mirror.done == set()


@pytest.mark.parametrize("fault", [Fault.status(429, retry_after=3600), Fault.stall()])
def test_a_wait_past_the_end_ends_the_run_in_time(fault):
    world = World(seed=4, users=300, messages_per_user=(0, 5))
    with MockServer(world) as server:
        server.clock.virtual()
        server.on("messages", user=world.user_ids()[200]).fail(fault)
        with server.client() as client:
            mirror = InMemoryMirror()
            began = server.clock.now
            assert not mirror.read(client, max_seconds=20)
            assert server.clock.now - began <= timedelta(seconds=20.5)
            assert mirror.swept is not None
            assert mirror.done


@pytest.mark.parametrize("known", [False, True])
def test_a_run_that_reads_nothing_because_all_is_refused_is_an_error(known):
    """Without one, a loop that reads on while a run is partial would not wait at all."""
    with MockServer(World(users=30, messages_per_user=2)) as server:
        server.clock.virtual()
        with server.client() as client:
            mirror = InMemoryMirror()
            if known:
                mirror.run(client)
                mirror.begin()
            server.on("any").fail(Fault.status(429, retry_after=3600))
            began = server.clock.now
            with pytest.raises(RateLimitError) as refused:
                mirror.read(client, max_seconds=60)
            assert refused.value.retry_after == 3600
            assert server.clock.now == began


def test_a_deadline_is_never_taken_for_the_end():
    """It passes while a batch is being committed; all lists are done, as in a resumed run."""
    world = World(users=12_000)
    remembered = InMemoryMirror()
    remembered.done = set(world.user_ids())
    with MockServer(world) as server:
        server.clock.virtual()
        with server.client(deadline=3) as client:
            run = client._sync_run(remembered.known(), mode="incremental", max_staleness=None)
            first = run.next_batch()
            assert first.users.num_rows < 12_000
            server.clock.advance(3)
            with pytest.raises(DeadlineExceededError):
                list(given(run))
