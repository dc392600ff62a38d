"""What the core reads, and in which batches: it asks for little, and misses nothing."""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from backread import AuthenticationError, Client
from backread.mirror.store.database import ROWS_A_GROUP
from backread.testing import Dialect, Fault, MockServer, World
from helpers.api_rows import envelope, message, paged, user
from helpers.in_memory_mirror import InMemoryMirror, as_table, given, ids, rows_of
from helpers.scripted_server import Request, answer
from helpers.waiting import PATIENCE

FIRST_BATCH = 12
"""Responses."""

pa = pytest.importorskip("pyarrow")


def run_of(client: Client, mirror: InMemoryMirror, **options: Any) -> Any:
    return client._sync_run(mirror.known(), mode="incremental", max_staleness=None, **options)


@pytest.fixture
def world() -> World:
    """Every third list is longer than a page."""
    return World(seed=7, users=60, messages_per_user=(0, 500))


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


def test_growing_end_is_read_on_and_a_list_with_a_gap_is_read_whole(world, mock, client, mirror):
    user_id = max(world.user_ids(), key=lambda each: len(world.message_ids(each)))
    world.add_messages(user_id, 250)
    mock.forget()
    mirror.run(client)
    assert mirror.differs(world) == []
    assert mirror.lists[user_id]["kind"] == "end"
    assert len(mock.calls("messages", user=user_id)) <= 4
    before = world.message_ids(user_id)
    world.remove_message(user_id, before[len(before) // 2])
    world.add_messages(user_id, 1)
    mirror.run(client)
    row = mirror.lists[user_id]
    assert (row["kind"], row["certificate"], row["rows"]) == ("whole", "counted", len(before))
    assert mirror.differs(world) == []
    # The next run goes by what that read proved.
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
    known.lists = ids([1])
    with pytest.raises(ValueError, match=r"cannot be read: .*no column"):
        client._sync_run(known, mode="incremental", max_staleness=None)
    for wrong in ({"mode": "half"}, {"max_staleness": -1.0}):
        arguments: dict[str, Any] = {"mode": "full", "max_staleness": None} | wrong
        with pytest.raises(ValueError, match=r"no such mode|max_staleness"):
            client._sync_run(mirror.known(), **arguments)


def test_of_forgotten_users_nothing_is_read(mock, world, client, mirror):
    forgotten = set(world.user_ids()[::2])
    # What an interrupted run left of them is not read either.
    mirror.begin()
    mirror.half_read = set(sorted(forgotten)[:3])
    mirror.read_lists = {
        each: {"user_id": each, "kind": "partial", "state": "{}"} for each in mirror.half_read
    }
    mirror.forgotten = forgotten
    mock.forget()
    run = run_of(client, mirror)
    for batch in given(run):
        assert not forgotten & {row["id"] for row in rows_of(batch.users)}
        mirror.commit(batch)
    progress = run.progress()
    assert progress.lists_done == progress.lists_total == 60 - len(forgotten)
    assert not mirror.done & forgotten
    assert mirror.swept.distinct == 60
    assert not {call.user for call in mock.calls("messages")} & forgotten


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


def test_rows_that_were_not_shown_are_fetched_by_id():
    world = World(seed=11, users=30, messages_per_user=(2, 9))
    first, second, *_, refused = world.user_ids()
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
    users = [{"resource": "users", "user_id": None, "id": each} for each in world.user_ids()]
    with MockServer(world) as mock, mock.client(max_retries=1, max_concurrency=1) as client:
        mock.on("message", user=first).fail(Fault.status(503), times=1)
        mirror = InMemoryMirror()
        assert mirror.ask(client, candidates) == sum(mock.counts().values())
        assert mirror.messages[first, there]["body"] == "edited"
        assert list(mirror.messages) == [(first, there)]
        assert list(mirror.users) == [first]
        assert sorted(mirror.gone, key=str) == sorted([candidates[0], candidates[2]], key=str)
        # Within a budget.
        run = client._ask_rows(as_table("gone", users), max_requests=10)
        found = [row for batch in given(run) for row in rows_of(batch.users)]
        assert run.ended_early
        assert len(found) == run.requests == 10
        # What was found before a failure is given out.
        mock.on("user", user=refused).fail(Fault.status(401))
        mirror = InMemoryMirror()
        with pytest.raises(AuthenticationError):
            mirror.ask(client, users)
    assert sorted(mirror.users) == world.user_ids()[:-1]


def test_a_run_that_waits_longer_than_a_batch_lasts_has_not_ended(scripted):
    """A batch is due after two seconds; one of nothing but a user that is gone comes first."""

    def service(request: Request) -> bytes:
        match request.path:
            case "/external/users":
                return paged([user(1), user(2)])(request)
            case "/external/users/2/messages":
                time.sleep(4.5)
                return answer(200, envelope([message(7)], key="messages"))
            case _:
                return answer(404, b"gone")

    server, mirror = scripted(service), InMemoryMirror()
    mirror.run(Client(server.url, server.secret, server.vendor))
    assert list(mirror.messages) == [(2, 7)]
    certificates = {user_id: row["certificate"] for user_id, row in mirror.lists.items()}
    assert certificates == {1: "uncertified", 2: "snapshot"}


def test_batches_are_small_at_first_grow_and_are_read_one_ahead():
    world = World(seed=3, users=900, messages_per_user=(60, 60))
    with MockServer(world) as server, server.client(max_concurrency=4) as client:
        run = run_of(client, InMemoryMirror())
        read = [run.next_batch()]
        # The next one is read without being requested, and then nothing more.
        asked, since = 0, time.monotonic()
        while asked < 2 * FIRST_BATCH or time.monotonic() - since < 0.3:
            before, asked = asked, sum(server.counts().values())
            since = time.monotonic() if asked != before else since
            assert time.monotonic() - since < PATIENCE
            time.sleep(0.01)
        assert asked <= 2 * FIRST_BATCH + 8
        read += given(run)
    sizes = [len(rows_of(batch.messages)) for batch in read]
    assert sum(sizes) == 900 * 60
    # No kill takes much more than a sixteenth of what was done, and the smallest are 12 responses.
    for number, size in enumerate(sizes):
        assert size <= max(1_200, sum(sizes[:number]) / 16) + 99
    assert max(sizes) > 2_500


# Long, because an unoptimised build reads fewer in the two seconds after which a batch is given.
@pytest.mark.long
def test_large_batches_are_whole_groups_and_every_row_is_given_once():
    world = World(seed=5, users=1_500, messages_per_user=(150, 400))
    sizes = []
    ids: Counter[tuple[int, int]] = Counter()
    ended: set[int] = set()
    with MockServer(world) as server, server.client() as client:
        for batch in given(run_of(client, InMemoryMirror())):
            if batch.messages is not None:
                table = pa.table(batch.messages)
                sizes.append(table.num_rows)
                users = table["user_id"].to_pylist()
                ids.update(zip(users, table["id"].to_pylist(), strict=True))
                # A list's end never comes before one of its rows.
                assert ended.isdisjoint(users)
            lists = rows_of(batch.lists)
            ended.update(row["user_id"] for row in lists if row["kind"] != "partial")
    assert set(ids.values()) == {1}
    assert len(ids) == world.total_messages > 12 * ROWS_A_GROUP
    assert ended == set(world.user_ids())
    large = [size for size in sizes[:-1] if size >= ROWS_A_GROUP]
    assert len(large) > 2
    assert all(size % ROWS_A_GROUP == 0 for size in large)
