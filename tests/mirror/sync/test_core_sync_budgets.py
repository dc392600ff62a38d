"""A run with a budget ends cleanly, and the next one goes on; users can be chosen or forgotten."""

import json
import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from backread import Client, DeadlineExceededError, RateLimitError
from backread.testing import Fault, MockServer, World
from helpers.api_rows import envelope, message, user
from helpers.in_memory_mirror import InMemoryMirror, given, ids, rows_of
from helpers.scripted_server import Request, answer

pa = pytest.importorskip("pyarrow")


def run_of(client: Client, mirror: InMemoryMirror, **options: Any) -> Any:
    return client._sync_run(mirror.known(), mode="incremental", max_staleness=None, **options)


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


def test_a_deadline_that_comes_first_is_still_an_error():
    with MockServer(World(users=300)) as server:
        server.clock.virtual()
        server.on("messages").fail(Fault.latency(2_000))
        with (
            server.client(deadline=3, max_concurrency=1) as client,
            pytest.raises(DeadlineExceededError),
        ):
            InMemoryMirror().read(client, max_seconds=60)


def test_chosen_users_alone_are_read(scripted):
    def service(request: Request) -> bytes:
        match request.path.split("/"):
            case [_, _, "users", "3"] | [_, _, "users", "3", _]:
                return answer(404, b"gone")
            case [_, _, "users", user_id]:
                return answer(200, user(int(user_id)))
            case [_, _, "users", user_id, "messages"]:
                return answer(200, envelope([message(int(user_id) * 10)], key="messages"))
            case _:
                return answer(500, b"no sweep")

    server = scripted(service)
    mirror = InMemoryMirror()
    mirror.forgotten = {4}
    with Client(server.url, server.secret, server.vendor) as client:
        run = run_of(client, mirror, users=ids([2, 3, 1, 2, -5, 4]))
        for batch in given(run):
            assert batch.users_report is None
            mirror.commit(batch)
        assert not run.ended_early
        progress = run.progress()
        assert (progress.lists_done, progress.lists_total) == (2, 2)
    assert sorted(mirror.users) == [1, 2]
    assert sorted(mirror.messages) == [(1, 10), (2, 20)]
    assert sorted(mirror.lists) == [1, 2]
    hints = json.loads(mirror.lists[1]["state"])["hints"]
    assert datetime.fromisoformat(hints["updated_at"]) == mirror.users[1]["updated_at"]
    assert mirror.gone == [{"resource": "users", "user_id": 3, "id": 3}]
    assert len(server.requests) == 5


def test_of_forgotten_users_nothing_is_read():
    world = World(seed=7, users=250, messages_per_user=(1, 300))
    forgotten = set(world.user_ids()[::2])
    with MockServer(world) as server, server.client() as client:
        mirror = InMemoryMirror()
        mirror.run(client)
        before = len(server.journal)
        again = InMemoryMirror()
        again.forgotten = forgotten
        # What an interrupted run left of them is not read either.
        again.lists = again.before = dict(mirror.lists)
        again.half_read = set(sorted(forgotten)[:3])
        again.read_lists = {
            each: {"user_id": each, "kind": "partial", "state": "{}"}
            for each in sorted(forgotten)[:3]
        }
        run = run_of(client, again)
        for batch in given(run):
            assert not forgotten & {row["id"] for row in rows_of(batch.users)}
            again.commit(batch)
        progress = run.progress()
        assert progress.lists_done == progress.lists_total == 250 - len(forgotten)
        assert not {user_id for user_id, _ in again.messages} & forgotten
        assert not again.done & forgotten
        assert again.swept.distinct == 250
        asked = {call.user for call in server.journal[before:] if call.route == "messages"}
        assert not asked & forgotten


def test_rows_are_fetched_by_id_within_a_budget():
    world = World(seed=7, users=30, messages_per_user=(1, 3))
    candidates = [{"resource": "users", "user_id": each, "id": each} for each in world.user_ids()]
    with MockServer(world) as server, server.client() as client:
        mirror = InMemoryMirror()
        table = pa.Table.from_pylist(candidates)
        run = client._ask_rows(table, max_requests=10)
        for batch in given(run):
            mirror.commit(batch)
        assert run.ended_early
        assert len(mirror.users) == run.requests == sum(server.counts().values()) == 10
        run = client._ask_rows(table, max_requests=30)
        assert sum(batch.users.num_rows for batch in given(run)) == 30
        assert not run.ended_early
