"""What a mirror is given to commit: batches that miss nothing, and an end that is the end."""

import time
from collections import Counter
from typing import Any

import pytest

from backread import Client, DeadlineExceededError
from backread.mirror.store.database import ROWS_A_GROUP
from backread.testing import MockServer, World
from helpers.api_rows import envelope, message, paged, user
from helpers.in_memory_mirror import InMemoryMirror, given, rows_of
from helpers.scripted_server import Request, answer
from helpers.waiting import PATIENCE

FIRST_BATCH = 12
"""Responses."""

pa = pytest.importorskip("pyarrow")


def run_of(client: Client, remembered: InMemoryMirror | None = None) -> Any:
    known = (remembered or InMemoryMirror()).known()
    return client._sync_run(known, mode="incremental", max_staleness=None)


def batches(client: Client) -> list[Any]:
    return list(given(run_of(client)))


def column(read: list[Any], table: str, name: str) -> list[Any]:
    tables = [getattr(batch, table) for batch in read]
    return [value for one in tables if one is not None for value in pa.table(one)[name].to_pylist()]


def client_of(server: Any, **options: Any) -> Client:
    return Client(server.url, server.secret, server.vendor, **options)


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

    read = batches(client_of(scripted(service)))
    assert column(read, "messages", "id") == [7]
    assert sorted(column(read, "lists", "user_id")) == [1, 2]
    certificates = dict(
        zip(column(read, "lists", "user_id"), column(read, "lists", "certificate"), strict=True)
    )
    assert certificates == {1: "uncertified", 2: "snapshot"}


def test_a_deadline_is_never_taken_for_the_end():
    """It passes while a batch is being committed; all lists are done, as in a resumed run."""
    world = World(users=12_000)
    remembered = InMemoryMirror()
    remembered.done = set(world.user_ids())
    with MockServer(world) as server:
        server.clock.virtual()
        with server.client(deadline=3) as client:
            run = run_of(client, remembered)
            first = run.next_batch()
            assert first.users.num_rows < 12_000
            server.clock.advance(3)
            with pytest.raises(DeadlineExceededError):
                list(given(run))


def test_batches_are_small_at_first_and_grow_with_what_was_given_out():
    world = World(seed=3, users=900, messages_per_user=(60, 60))
    with MockServer(world) as server, server.client() as client:
        read = [column([batch], "messages", "id") for batch in given(run_of(client))]
    sizes = [len(ids) for ids in read]
    assert sum(sizes) == 900 * 60
    # No kill takes much more than a sixteenth of what was done, and the smallest are 12 responses.
    for number, size in enumerate(sizes):
        assert size <= max(1_200, sum(sizes[:number]) / 16) + 99
    assert max(sizes) > 2_500


def test_the_next_batch_is_read_while_one_is_in_the_reader_s_hands_and_no_more():
    world = World(seed=3, users=900, messages_per_user=(60, 60))
    with MockServer(world) as server, server.client(max_concurrency=4) as client:
        run = run_of(client)
        assert run.next_batch() is not None
        # Nobody asks for the next one: it is read all the same, and then nothing more.
        asked, since = 0, time.monotonic()
        while asked < 2 * FIRST_BATCH or time.monotonic() - since < 0.3:
            before, asked = asked, sum(server.counts().values())
            since = time.monotonic() if asked != before else since
            assert time.monotonic() - since < PATIENCE
            time.sleep(0.01)
        assert asked <= 2 * FIRST_BATCH + 8
        run.stop()


# Large batches hold as many messages as the mirror's database stores together, and lose none.


USERS = 1_500


# Long, because an unoptimised build reads fewer in the two seconds after which a batch is given.
@pytest.mark.long
def test_large_batches_are_whole_groups_and_every_row_is_given_once():
    world = World(seed=5, users=USERS, messages_per_user=(150, 400))
    mirror = InMemoryMirror()
    sizes = []
    ids: Counter[tuple[int, int]] = Counter()
    ended: set[int] = set()
    with MockServer(world) as server, server.client() as client:
        run = client._sync_run(mirror.known(), mode="incremental", max_staleness=None)
        for batch in given(run):
            if batch.messages is not None:
                table = pa.table(batch.messages)
                sizes.append(table.num_rows)
                users = table["user_id"].to_pylist()
                ids.update(zip(users, table["id"].to_pylist(), strict=True))
                # A list's end never comes before one of its rows.
                assert ended.isdisjoint(users)
            ended.update(row["user_id"] for row in rows_of(batch.lists))
    assert set(ids.values()) == {1}
    assert len(ids) == world.total_messages > 12 * ROWS_A_GROUP
    assert ended == set(world.user_ids())
    large = [size for size in sizes[:-1] if size >= ROWS_A_GROUP]
    assert len(large) > 2
    assert all(size % ROWS_A_GROUP == 0 for size in large)
