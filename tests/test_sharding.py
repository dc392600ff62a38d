"""``plan`` and ``Shard``: one reading in parts, which together cover what one walk would."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import multiprocessing
import os
import pickle
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backread import (
    AsyncClient,
    Client,
    ConfigurationError,
    IncompleteError,
    Plan,
    RateLimitError,
    Shard,
    WalkReport,
    join_reports,
    plan,
)
from backread.testing import Dialect, Lane, MockServer, World
from canned import ids, paged, user, users
from interpreter import check_silent, run
from scripted_server import answer


@pytest.fixture
def lane(backread_server: MockServer) -> Any:
    with backread_server.lane(world=World(seed=5, users=230, messages_per_user=(0, 130))) as lane:
        yield lane


def keys(rows: Any) -> Counter[tuple[int | None, int]]:
    return Counter((getattr(row, "user_id", None), row.id) for row in rows)


def expected(world: World, resource: str) -> Counter[tuple[int | None, int]]:
    if resource == "users":
        return Counter((None, user_id) for user_id in world.user_ids())
    return Counter(
        (user_id, one) for user_id in world.user_ids() for one in world.message_ids(user_id)
    )


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_shards_together_are_one_walk(lane: Lane, resource: Any) -> None:
    with lane.client() as client:
        shards = plan(client, resource=resource, shards=7)
        listings = [shard.read() for shard in shards]
        assert keys(row for listing in listings for row in listing) == expected(
            lane.world, resource
        )
        whole = client.messages.all() if resource == "messages" else client.users.list()
        list(whole)
    report = join_reports(shards, [listing.report for listing in listings])
    one = whole.report
    assert (
        (report.certificate, report.distinct)
        == (one.certificate, one.distinct)
        != (
            "uncertified",
            0,
        )
    )
    assert (report.total_first, report.total_last) == (one.total_first, one.total_last)
    assert report.lists_by_certificate == one.lists_by_certificate
    assert report.started_at == shards.report.started_at
    assert report.requests == shards.report.requests + sum(
        listing.report.requests for listing in listings
    )
    # The messages cost what one walk costs; the users are read by the plan, and then by the shards.
    assert report.requests <= one.requests + (0 if resource == "messages" else 7)


def test_each_shard_is_of_about_the_same_number_of_users(lane: Lane) -> None:
    with lane.client() as client:
        shards = plan(client, shards=7)
        assert [shard.index for shard in shards] == list(range(7))
        assert {shard.count for shard in shards} == {7}
        assert {shard.users for shard in shards} == {32, 33}
        assert [one for shard in shards for one in shard.user_ids()] == lane.world.user_ids()
        assert (shards.resource, shards.users) == ("messages", 230)
        # One for each 500 users, unless told.
        assert len(plan(client)) == 1
        # A shard without users would be a task for nothing.
        assert len(plan(client, shards=1_000)) == 230


def test_a_service_without_users_is_one_shard_without_rows(backread_server: MockServer) -> None:
    with backread_server.lane(world=World(seed=1, users=0)) as lane, lane.client() as client:
        for resource in ("users", "messages"):
            shards = plan(client, resource=resource)  # type: ignore[call-overload]
            [listing] = [shard.read() for shard in shards]
            assert list(listing) == []
            assert join_reports(shards, [listing.report]).certificate != "uncertified"


def test_a_shard_is_small_and_holds_no_secret(backread_server: MockServer) -> None:
    with (
        backread_server.lane(world=World(seed=5, users=2_000)) as lane,
        lane.client() as client,
    ):
        shards = plan(client, shards=4)
        for shard in shards:
            forms = [pickle.dumps(shard), shard.to_json().encode(), repr(shard).encode()]
            assert not [form for form in forms if client_secret(lane) in form]
            # 500 ids, and the settings.
            assert max(map(len, forms)) < 2_500, [len(form) for form in forms]
        assert client_secret(lane) not in pickle.dumps(shards)


def client_secret(lane: Lane) -> bytes:
    return lane.secret.encode()


def test_shards_and_plans_travel_by_pickle_and_as_json(lane: Lane) -> None:
    with lane.client() as client:
        shards = plan(client, shards=3)
    for sent in (pickle.loads(pickle.dumps(shards)), Plan.from_json(shards.to_json())):
        assert (sent, sent.report, sent.plan_id) == (shards, shards.report, shards.plan_id)
        assert isinstance(sent, Plan)
        assert [hash(shard) for shard in sent] == [hash(shard) for shard in shards]
    assert [Shard.from_json(shard.to_json()) for shard in shards] == shards
    listing = shards[0].read(Client(lane.url, lane.secret, lane.vendor))
    list(listing)
    assert WalkReport.from_json(listing.report.to_json()) == listing.report


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "nothing",
        '{"format": 3}',
        pytest.param({"users": 3}, id="other-ids"),
        pytest.param({"ids": "no base64!"}, id="no-base64"),
        pytest.param({"ids": "AAAA"}, id="half-an-id"),
        pytest.param({"ids": 5}, id="number-as-ids"),
        '{"shards": [], "report": {}}',
    ],
)
def test_what_is_no_shard_is_refused(lane: Lane, text: str | dict[str, Any]) -> None:
    if not isinstance(text, str):
        with lane.client() as client:
            document = json.loads(plan(client)[0].to_json())
        text = json.dumps(document | text)
    with pytest.raises(ValueError, match=r"JSON is no shard|hold no ids|Expecting value|format 3"):
        Shard.from_json(text)
    with pytest.raises(ValueError, match=r"JSON is no plan|Expecting value|JSON is no"):
        Plan.from_json(text)
    with pytest.raises(ValueError, match=r"JSON is no WalkReport|Expecting value"):
        WalkReport.from_json(text)


def test_rate_and_concurrency_are_shared_out(lane: Lane) -> None:
    def share(shards: Plan[Any]) -> tuple[float | None, int]:
        [options] = {
            json.dumps(json.loads(shard.to_json())["settings"]["options"]) for shard in shards
        }
        return json.loads(options)["rate_limit"], json.loads(options)["max_concurrency"]

    with lane.client(rate_limit=1_000, max_concurrency=16) as client:
        assert share(plan(client, shards=5)) == (200, 3)
        assert share(plan(client, shards=5, workers=2)) == (500, 8)
        assert share(plan(client, shards=2, workers=8)) == (500, 8)
        assert share(plan(client, shards=100)) == (10, 1)
    with lane.client() as client:
        assert share(plan(client, shards=4)) == (None, 4)


def test_a_shard_keeps_to_its_part_of_the_rate(lane: Lane) -> None:
    clock = lane.clock
    clock.virtual()
    with lane.client(rate_limit=40) as client:
        shards = plan(client, shards=4)
        before = clock.now
        list(shards[0].read())
        took = (clock.now - before).total_seconds()
    # 57 users are 57 requests and more, at ten a second.
    assert took >= 4


def set_environment(variables: dict[str, str]) -> None:
    os.environ.update(variables)


def read(shard: Shard[Any]) -> tuple[list[int], WalkReport]:
    listing = shard.read()
    return ids(listing), listing.report


@pytest.mark.parametrize("start", multiprocessing.get_all_start_methods())
def test_a_pool_of_processes_reads_them(lane: Lane, start: str) -> None:
    with lane.client() as client:
        shards = plan(client, shards=4, workers=2)
    context = multiprocessing.get_context(start)
    # A fork server keeps the environment of the first test that started it.
    secret = {"BACKREAD_API_SECRET": lane.secret}
    with concurrent.futures.ProcessPoolExecutor(
        2, mp_context=context, initializer=set_environment, initargs=(secret,)
    ) as pool:
        parts = list(pool.map(read, shards))
    assert Counter(one for part, _ in parts for one in part) == Counter(
        one for _, one in expected(lane.world, "messages")
    )
    assert join_reports(shards, [report for _, report in parts]).certificate == "linked"


def test_without_a_secret_a_worker_says_what_to_do(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BACKREAD_API_SECRET", raising=False)
    with lane.client() as client:
        shards = plan(client, shards=2)
        # While the plan's client is open, its process needs no other secret.
        assert list(shards[0].read())
    for shard in (shards[0], pickle.loads(pickle.dumps(shards[0]))):
        with pytest.raises(ConfigurationError, match=r"shard 0 of 2.*set BACKREAD_API_SECRET"):
            shard.read()
        kept = tmp_path / "secret"
        kept.write_text(f"{lane.secret}\n")
        assert list(shard.read(secret_file=kept))
        with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
            shard.read(secret_file=tmp_path / "other")


def test_a_shard_may_be_read_again(lane: Lane) -> None:
    with lane.client(max_retries=0) as client:
        shards = plan(client, shards=3)
        listing = shards[1].read()
        lane.fault("messages: status(429, retry_after=7) x1")
        with pytest.raises(RateLimitError) as caught:
            list(listing)
        assert caught.value.retry_after == 7
        assert listing.report.reason == "a request failed"
        lane.clear_faults()
        once, again = list(listing), list(shards[1].read())
    # Lists are read side by side.
    assert sorted(once, key=lambda one: one.id) == sorted(again, key=lambda one: one.id)


# --- rows that come and go between the plan and its shards ----------------------------------------


def test_messages_of_users_that_are_gone_are_no_error(lane: Lane) -> None:
    with lane.client() as client:
        shards = plan(client, shards=2)
        gone = shards[0].user_ids()[3]
        wanted = expected(lane.world, "messages")
        wanted = Counter({key: 1 for key in wanted if key[0] != gone})
        lane.world.remove_user(gone)
        lane.world.add_users(5)
        listings = [shard.read() for shard in shards]
        assert keys(row for listing in listings for row in listing) == wanted
        report = join_reports(shards, [listing.report for listing in listings])
    # As in a walk whose users go while it goes on.
    assert report.certificate == "uncertified"
    assert report.reason == "shard 0: 1 users were gone when their messages were asked for"


def test_users_that_are_gone_are_asked_for_and_no_doubt(lane: Lane) -> None:
    with lane.client() as client:
        shards = plan(client, resource="users", shards=2)
        for user_id in lane.world.user_ids()[10:13]:
            lane.world.remove_user(user_id)
        listings = [shard.read() for shard in shards]
        assert keys(row for listing in listings for row in listing) == expected(lane.world, "users")
    report = join_reports(shards, [listing.report for listing in listings])
    # Three of the first shard are gone, and three more of it and the other moved to other pages.
    assert (report.certificate, report.rows_gone, report.rows_short) == ("linked", 3, 0)
    assert (report.total_first, report.total_last) == (230, 227)


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("seed", range(12))
def test_each_user_of_the_plan_is_held_or_gone(
    backread_server: MockServer, order: str, seed: int
) -> None:
    """Whatever comes and goes, no planned user that is there is missed, none is given twice."""
    from random import Random

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
    assert (report.rows_short == 0) == (report.certificate != "uncertified")
    assert len(there - set(held)) <= (report.rows_short or 0)


@pytest.mark.parametrize("change", ["150 more", "150 less"])
def test_users_that_moved_to_other_pages_are_found_there(
    backread_server: MockServer, change: str
) -> None:
    world = World(seed=3, users=700)
    lane = backread_server.lane(world=world, dialect=Dialect(order="newest"))
    with lane as m, m.client() as client:
        shards = plan(client, resource="users", shards=3)
        planned = set(world.user_ids())
        if change == "150 more":
            world.add_users(150)
        else:
            for user_id in world.user_ids()[-150:]:
                world.remove_user(user_id)
        listings = [shard.read() for shard in shards]
        held = [one for listing in listings for one in ids(listing)]
    there = planned & set(world.user_ids())
    if change == "150 more":
        assert sorted(held) == sorted(there)
        assert {listing.report.certificate for listing in listings} == {"linked"}
        assert m.calls("user").count <= 3 * 4
    else:
        # The first shard lost more users than may be asked for; the others found theirs.
        assert set(held) <= there
        assert [listing.report.certificate for listing in listings[1:]] == ["linked", "linked"]
        assert [listing.report.rows_short for listing in listings[1:]] == [0, 0]


def test_a_list_that_is_shuffled_each_time_is_read_within_bounds(
    backread_server: MockServer,
) -> None:
    world = World(seed=3, users=600)
    with (
        backread_server.lane(world=world, dialect=Dialect(order="shuffled")) as lane,
        lane.client() as client,
    ):
        shards = plan(client, resource="users", shards=2)
        listing = shards[0].read()
        list(listing)
        report = listing.report
        assert report.certificate == "uncertified"
        assert report.reason is not None
        assert report.reason.startswith(f"{report.rows_short} of the plan's ")
        assert report.proving_requests <= 16 + 8 * 4 + 8
        with pytest.raises(IncompleteError):
            list(shards[0].read(strict=True))


@pytest.mark.parametrize("bundle", ["documented", "lenient", "hostile"])
def test_the_habits_of_services(backread_server: MockServer, bundle: str) -> None:
    world = World(seed=3, users=450, messages_per_user=(0, 20))
    lane = backread_server.lane(world=world, dialect=bundle)
    with lane as m, m.client() as client:
        for resource in ("users", "messages"):
            shards = plan(client, resource=resource, shards=3)  # type: ignore[call-overload]
            listings = [shard.read() for shard in shards]
            read = keys(row for listing in listings for row in listing)
            report = join_reports(shards, [listing.report for listing in listings])
            missing = expected(world, resource) - read
            assert not missing or report.certificate == "uncertified", (resource, report)
            assert not read - expected(world, resource)


# --- what is said of it ---------------------------------------------------------------------------


def test_the_weakest_certificate_counts(lane: Lane) -> None:
    with lane.client() as client:
        shards = plan(client, shards=2)
        reports = []
        for shard in shards:
            listing = shard.read()
            list(listing)
            reports.append(listing.report)
    assert join_reports(shards, reports).certificate == "linked"
    doubted = replace(
        reports[1], certificate="uncertified", reason="why not", uncertified_users=(9, 4)
    )
    report = join_reports(shards, [reports[0], doubted])
    assert (report.certificate, report.reason) == ("uncertified", "shard 1: why not")
    assert report.uncertified_users == (4, 9)
    shards.report = replace(shards.report, certificate="uncertified", reason="no total")
    report = join_reports(shards, reports)
    assert (report.certificate, report.reason) == ("uncertified", "the list of users: no total")
    with pytest.raises(ValueError, match="1 reports for 2 shards"):
        join_reports(shards, reports[:1])
    with pytest.raises(ValueError, match="the same report was given twice"):
        join_reports(shards, [reports[0], WalkReport.from_json(reports[0].to_json())])


def test_a_shard_that_was_not_read_proves_nothing(lane: Lane) -> None:
    with lane.client() as client:
        shards = plan(client, shards=2)
        report = join_reports(shards, [shard.read().report for shard in shards])
    assert report.certificate == "uncertified"
    assert report.reason == "shard 0: not read yet; shard 1: not read yet"
    assert report.ended_at is None


@pytest.mark.parametrize(
    ("single", "reason"),
    [
        (answer(500), "could not be fetched by id: .* 500"),
        (answer(200, "<html>"), "could not be fetched by id: .* not JSON"),
        (answer(200, user(9_999)), "could not be fetched by id: user 100 came as another one"),
    ],
    ids=["500", "html", "another user"],
)
def test_a_user_that_cannot_be_fetched_by_id_is_the_reason(
    scripted: Any, single: bytes, reason: str
) -> None:
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


def test_users_without_an_id_cannot_be_planned_and_that_is_said(scripted: Any) -> None:
    rows = [*users(5), {"id": None, "name": "nobody"}, {"name": "no one"}]
    server = scripted(paged(rows))
    with Client(server.url, server.secret, server.vendor) as client:
        shards = plan(client, resource="users")
    assert shards.users == 5
    assert shards.report.certificate == "uncertified"
    assert shards.report.reason is not None
    assert shards.report.reason.endswith("2 users have no usable id, and no shard can name them")


def test_wrong_arguments_are_refused_before_anything_is_sent(lane: Lane) -> None:
    with lane.client() as client:
        for wrong in ({"resource": "chats"}, {"shards": 0}, {"shards": 10_001}, {"workers": 0}):
            with pytest.raises(ValueError, match=r"is 'users' or 'messages'|must be 1 "):
                plan(client, **wrong)  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="shards must be an int"):
            plan(client, shards=2.5)  # type: ignore[call-overload]
        [shard] = plan(client)
        sent = lane.calls().count
        with pytest.raises(TypeError, match=r"takes a Client or None, not str"):
            shard.read("other")  # type: ignore[arg-type]
    awaited = AsyncClient(lane.url, lane.secret, lane.vendor)
    with pytest.raises(TypeError, match=r"write await asyncio.to_thread\(plan, client\)"):
        plan(awaited)  # type: ignore[call-overload]
    asyncio.run(awaited.aclose())
    proxied = Client(lane.url, lane.secret, lane.vendor, proxy="http://me:word@127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        plan(proxied)
    assert "word@" not in str(caught.value)
    assert lane.calls().count == sent
    with pytest.raises(AttributeError, match="frozen"):
        shard.index = 3  # type: ignore[misc]


def test_where_one_awaits_it_goes_as_the_refusal_says(lane: Lane) -> None:
    async def planned() -> Plan[Any]:
        with lane.client() as client:
            return await asyncio.to_thread(plan, client, shards=3)

    assert len(asyncio.run(planned())) == 3


def test_planning_loads_nothing_that_is_not_needed(backread_server: MockServer) -> None:
    done = run(
        """
        import sys
        from backread import Client, plan
        with Client() as client:
            [shard, *_] = plan(client)
            next(iter(shard.read()))
        print(sorted({"pyarrow", "duckdb", "pandas", "polars", "asyncio"} & set(sys.modules)))
        """,
        backread_server,
    )
    check_silent(done, "[]")
