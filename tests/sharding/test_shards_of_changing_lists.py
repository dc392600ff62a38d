"""Rows that come and go between a plan and the reading of its shards, and what is reported then."""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from backread import Client, join_reports, plan
from backread.testing import Dialect, Lane, MockServer, World
from helpers.api_rows import ids, paged, user, users
from helpers.scripted_server import answer


@pytest.fixture
def lane(backread_server: MockServer) -> Iterator[Lane]:
    with backread_server.lane(world=World(seed=5, users=230, messages_per_user=(0, 130))) as lane:
        yield lane


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("seed", range(12))
def test_each_user_of_the_plan_is_held_or_gone(backread_server, order, seed):
    """Whatever comes and goes, no planned user that is there is missed, none is given twice."""
    random = Random(seed)
    world = World(seed=seed, users=random.randint(1, 900))
    dialect = Dialect(order="newest") if order == "newest" else Dialect()
    with backread_server.lane(world=world, dialect=dialect) as lane, lane.client() as client:
        shards = plan(client, resource="users", shards=random.randint(1, 6))
        planned = set(world.user_ids())
        assert shards.report.certificate != "uncertified"
        for _ in range(random.choice([0, 1, 5, 300])):
            if random.random() < 0.5:
                world.add_users()
            elif world.total_users:
                world.remove_user(random.choice(world.user_ids()))
        before = lane.calls().count
        listings = [shard.read() for shard in shards]
        held = [one for listing in listings for one in ids(listing)]
        spent = lane.calls().count - before
    report = join_reports(shards, [listing.report for listing in listings])
    there = planned & set(world.user_ids())
    assert len(held) == len(set(held)) == report.distinct
    assert set(held) <= planned
    pages = sum(-(-shard.users // 99) for shard in shards)
    assert spent == sum(listing.report.requests for listing in listings)
    # Lanes may have sent some more when the bound is met.
    assert spent <= pages + sum(16 + 8 * -(-shard.users // 99) + 8 for shard in shards)
    if report.certificate == "linked":
        assert set(held) == there
    assert (report.evidence["rows_short"] == 0) == (report.certificate != "uncertified")
    assert len(there - set(held)) <= (report.evidence["rows_short"] or 0)


@pytest.mark.parametrize(
    ("single", "reason"),
    [
        (answer(500), "could not be fetched by id: .* 500"),
        (answer(200, "<html>"), "could not be fetched by id: .* not JSON"),
        (
            answer(200, user(9_999)),
            "could not be fetched by id: the service sent another user for id 100",
        ),
    ],
    ids=["500", "html", "another user"],
)
def test_a_user_that_cannot_be_fetched_by_id_is_the_reason(scripted, single, reason):
    rows = users(250)
    gone: set[int] = set()

    def service(request: Any) -> bytes:
        if request.path.endswith("/users"):
            return paged([row for row in rows if row["id"] not in gone])(request)
        return single

    server = scripted(service)
    with Client(server.url, server.secret, server.vendor, max_retries=0) as client:
        [first, *_] = plan(client, resource="users", shards=2)
        gone.add(100)
        listing = first.read(client)
        assert 100 not in [row.id for row in listing]
        assert 9_999 not in [row.id for row in listing]
    assert listing.report.certificate == "uncertified"
    assert re.search(reason, listing.report.reason or "")
