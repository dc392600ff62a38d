"""``plan`` and shards: one reading in parts, which together cover what one walk would."""

import base64
import concurrent.futures
import json
import multiprocessing
import pickle
import re
import tracemalloc
import zlib
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from backread import (
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
from backread.sharding.live import LiveShard, listed_ids, live_shards
from backread.testing import Dialect, Lane, World
from helpers.api_rows import envelope, ids, paged, user, users
from helpers.scripted_server import answer
from helpers.shards import expected, keys


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_shards_together_are_one_walk(lane, resource):
    with lane.client() as client:
        shards = plan(client, resource=resource, shards=7)
        listings = [shard.read() for shard in shards]
        held = keys(row for listing in listings for row in listing)
        assert held == expected(lane.world, resource)
        whole = client.messages.all() if resource == "messages" else client.users.list()
        list(whole)
    report, one = join_reports(shards, [listing.report for listing in listings]), whole.report
    assert (report.certificate, report.distinct) == (one.certificate, one.distinct)
    assert (report.certificate, report.distinct) != ("uncertified", 0)
    assert (report.total_first, report.total_last) == (one.total_first, one.total_last)
    assert report.lists_by_certificate == one.lists_by_certificate
    assert report.started_at == shards.report.started_at
    requests = [shards.report.requests, *(listing.report.requests for listing in listings)]
    assert report.requests == sum(requests)
    # The messages cost what one walk costs; the users are read by the plan, and then by the shards.
    assert report.requests <= one.requests + (0 if resource == "messages" else 7)


def test_a_service_without_users_is_one_shard_without_rows(backread_server):
    with backread_server.lane(world=World(seed=1, users=0)) as lane, lane.client() as client:
        for resource in ("users", "messages"):
            shards = plan(client, resource=resource)  # type: ignore[call-overload]
            [listing] = [shard.read() for shard in shards]
            assert list(listing) == []
            assert join_reports(shards, [listing.report]).certificate != "uncertified"


def test_a_shard_is_small_and_holds_no_secret(backread_server):
    world = World(seed=5, users=2_000)
    with backread_server.lane(world=world) as lane, lane.client() as client:
        shards = plan(client, shards=4)
    for shard in shards:
        forms = [pickle.dumps(shard), shard.to_json().encode(), repr(shard).encode()]
        assert not [form for form in forms if lane.secret.encode() in form]
        # 500 ids, and the settings.
        assert max(map(len, forms)) < 2_500, [len(form) for form in forms]
        assert len(json.loads(shard.to_json())["signature"]) == 64
        assert "signature" not in repr(shard)
    assert lane.secret.encode() not in pickle.dumps(shards)


def test_shards_and_plans_travel_by_pickle_and_as_json(lane):
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
    "text", ["{}", "[]", "nothing", '{"format": 3}', '{"shards": [], "report": {}}']
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ValueError, match="not a shard"):
        Shard.from_json(text)
    with pytest.raises(ValueError, match=r"not a (plan|shard)"):
        Plan.from_json(text)
    with pytest.raises(ValueError, match="not a WalkReport"):
        WalkReport.from_json(text)


def test_a_shard_whose_ids_unpack_to_much_more_takes_no_memory(lane):
    def with_ids(packed: bytes, **changes: Any) -> Shard[Any]:
        return Shard.from_dict(document | {"ids": base64.b64encode(packed).decode()} | changes)

    with lane.client() as client:
        document = plan(client)[0].to_dict()
    bomb = zlib.compress(bytes(80_000_000), 9)
    tracemalloc.start()
    try:
        # Its signature is checked before they are unpacked.
        with_ids(bomb, users=10_000_000)
        with pytest.raises(ValueError, match="packed ids"):
            with_ids(bomb).user_ids()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    packed = zlib.compress(bytes(24))
    for odd in (b"AAA", packed, packed[:-1], zlib.compress(b"") + b"1"):
        with pytest.raises(ValueError, match="packed ids"):
            with_ids(odd).user_ids()


def test_rate_and_concurrency_are_shared_out(lane):
    def share(client: Client, **options: Any) -> tuple[float | None, int]:
        shards = [json.loads(shard.to_json()) for shard in plan(client, **options)]
        kept = [shard["settings"]["options"] for shard in shards]
        [found] = {(each["rate_limit"], each["max_concurrency"]) for each in kept}
        return found

    with lane.client(rate_limit=1_000, max_concurrency=16) as client:
        assert share(client, shards=5) == (200, 3)
        assert share(client, shards=5, workers=2) == (500, 8)
        assert share(client, shards=2, workers=8) == (500, 8)
        assert share(client, shards=100) == (10, 1)
    with lane.client() as client:
        assert share(client, shards=4) == (None, 4)


def read(shard: Shard[Any]) -> tuple[list[int], WalkReport]:
    listing = shard.read()
    return ids(listing), listing.report


def test_a_pool_of_processes_reads_them(lane):
    with lane.client() as client:
        shards = plan(client, shards=4, workers=2)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool:
        parts = list(pool.map(read, shards))
    held = sorted(one for part, _ in parts for one in part)
    assert held == sorted(one for _, one in expected(lane.world, "messages").elements())
    assert join_reports(shards, [report for _, report in parts]).certificate == "linked"


def test_without_a_secret_a_worker_says_what_to_do(lane, monkeypatch, tmp_path):
    monkeypatch.delenv("BACKREAD_API_SECRET")
    with lane.client() as client:
        [shard, _] = plan(client, shards=2)
        # While the plan's client is open, its process needs no other secret.
        assert list(shard.read())
    kept = tmp_path / "secret"
    kept.write_text(f"{lane.secret}\n")
    for each in (shard, pickle.loads(pickle.dumps(shard))):
        with pytest.raises(ConfigurationError, match=r"shard 0 of 2.*set BACKREAD_API_SECRET"):
            each.read()
        assert list(each.read(secret_file=kept))
        with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
            each.read(secret_file=tmp_path / "other")


def test_a_shard_may_be_read_again(lane):
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


def test_the_weakest_certificate_counts(lane):
    with lane.client() as client:
        shards = plan(client, shards=2)
        listings = [shard.read() for shard in shards]
        unread = join_reports(shards, [listing.report for listing in listings])
        assert (unread.certificate, unread.ended_at) == ("uncertified", None)
        assert unread.reason == "shard 0: not read yet; shard 1: not read yet"
        for listing in listings:
            list(listing)
    first, second = (listing.report for listing in listings)
    assert join_reports(shards, [first, second]).certificate == "linked"
    doubt: Any = {"certificate": "uncertified", "reason": "why not", "uncertified_users": (9, 4)}
    report = join_reports(shards, [first, replace(second, **doubt)])
    assert (report.certificate, report.reason) == ("uncertified", "shard 1: why not")
    assert report.uncertified_users == (4, 9)
    shards.report = replace(shards.report, certificate="uncertified", reason="no total")
    report = join_reports(shards, [first, second])
    assert (report.certificate, report.reason) == ("uncertified", "the list of users: no total")
    with pytest.raises(ValueError, match="1 reports for 2 shards"):
        join_reports(shards, [first])
    with pytest.raises(ValueError, match="the same report was given twice"):
        join_reports(shards, [first, WalkReport.from_json(first.to_json())])


def test_users_without_an_id_cannot_be_planned_and_that_is_said(scripted):
    server = scripted(paged([*users(5), {"id": None, "name": "nobody"}, {"name": "no one"}]))
    with server.client() as client:
        shards = plan(client, resource="users")
    assert (shards.users, shards.report.certificate) == (5, "uncertified")
    assert shards.report.reason.endswith("2 users have no usable id, so no shard can contain them")


def test_wrong_arguments_are_refused_before_anything_is_sent(lane):
    with lane.client() as client:
        [shard] = plan(client)
        sent = lane.calls().count
        for wrong in ({"resource": "chats"}, {"shards": 0}, {"shards": 10_001}, {"workers": 0}):
            with pytest.raises(ValueError, match=r"must be ('users' or 'messages'|1 )"):
                plan(client, **wrong)
        with pytest.raises(TypeError, match="shards must be an int"):
            plan(client, shards=2.5)
    with pytest.raises(TypeError, match=r"takes a Client or None, not str"):
        shard.read("other")
    with pytest.raises(TypeError, match=r"use await asyncio.to_thread\(plan, client\)"):
        plan(lane.async_client())
    proxied = Client(lane.url, lane.secret, lane.vendor, proxy="http://me:word@127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        plan(proxied)
    assert "word@" not in str(caught.value)
    assert lane.calls().count == sent
    with pytest.raises(AttributeError, match="frozen"):
        shard.index = 3


@pytest.mark.parametrize("order", ["id", "newest"])
@pytest.mark.parametrize("seed", range(4))
def test_each_user_of_the_plan_is_held_or_gone(backread_server, order, seed):
    """Whatever comes and goes, no planned user that is there is missed, none is given twice."""
    random = Random(seed)
    world = World(seed=seed, users=random.randint(1, 900))
    dialect = Dialect(order=order)
    with backread_server.lane(world=world, dialect=dialect) as lane, lane.client() as client:
        shards = plan(client, resource="users", shards=random.randint(1, 6))
        planned = set(world.user_ids())
        assert shards.report.certificate != "uncertified"
        for _ in range((0, 1, 5, 300)[seed]):
            if random.random() < 0.5:
                world.add_users()
            elif world.total_users:
                world.remove_user(random.choice(world.user_ids()))
        before = lane.calls().count
        listings = [shard.read() for shard in shards]
        held = [one for listing in listings for one in ids(listing)]
        spent = lane.calls().count - before
    report = join_reports(shards, [listing.report for listing in listings])
    missing = (planned & set(world.user_ids())) - set(held)
    assert len(held) == len(set(held)) == report.distinct
    assert set(held) <= planned
    assert spent == sum(listing.report.requests for listing in listings)
    # Lanes may have sent some more when the bound is met.
    pages = [-(-shard.users // 99) for shard in shards]
    assert spent <= sum(each + 16 + 8 * each + 8 for each in pages)
    if report.certificate == "linked":
        assert set(held) == planned & set(world.user_ids())
    assert (report.evidence["rows_short"] == 0) == (report.certificate != "uncertified")
    assert len(missing) <= (report.evidence["rows_short"] or 0)


@pytest.mark.parametrize(
    ("single", "reason"),
    [
        (answer(500), "could not be fetched by id: .* 500"),
        (answer(200, "<html>"), "could not be fetched by id: .* not JSON"),
        (answer(200, user(9_999)), "by id: the service sent another user for id 100"),
    ],
    ids=["500", "html", "another user"],
)
def test_a_user_that_cannot_be_fetched_by_id_is_the_reason(scripted, single, reason):
    rows = users(250)

    def service(request: Any) -> bytes:
        return paged(rows)(request) if request.path.endswith("/users") else single

    with scripted(service).client(max_retries=0) as client:
        [first, *_] = plan(client, resource="users", shards=2)
        rows.remove(user(100))
        listing = first.read(client)
        assert not {100, 9_999} & {row.id for row in listing}
    assert listing.report.certificate == "uncertified"
    assert re.search(reason, listing.report.reason or "")


# --- shards that name no users, as Spark keeps them -----------------------------------------------


def made(lane: Lane, **options: Any) -> list[LiveShard]:
    """The shards, as another process has them."""
    with lane.client() as client:
        shards = live_shards(client, **options)
    sent: list[LiveShard] = pickle.loads(pickle.dumps(shards))
    return sent


def read_all(shards: list[LiveShard], **options: Any) -> Counter[tuple[int | None, int]]:
    return keys(row for each in shards for row in each.read(**options))


@pytest.mark.parametrize(("resource", "strict"), [("users", True), ("messages", False)])
def test_each_reading_is_of_the_users_there_are(lane, resource, strict):
    shards = made(lane, resource=resource, shards=5)
    assert read_all(shards, strict=strict) == expected(lane.world, resource)
    lane.world.add_users(100)
    assert read_all(shards, strict=strict) == expected(lane.world, resource)
    for user_id in lane.world.user_ids()[::3]:
        lane.world.remove_user(user_id)
    lane.world.add_messages(lane.world.user_ids()[0], 3)
    # Those that went before the reading are no doubt of it.
    assert read_all(shards, strict=True) == expected(lane.world, resource)


def test_users_that_come_and_go_while_shards_are_read_are_in_one_of_them(lane):
    stayed = expected(lane.world, "messages")
    found: Counter[tuple[int | None, int]] = Counter()
    for shard in made(lane, resource="messages", shards=4):
        found += read_all([shard])
        lane.world.remove_user(lane.world.add_users(7)[0])
    assert not stayed - found
    assert set(found.values()) == {1}


def test_number_of_live_shards(lane, scripted):
    assert len(made(lane, resource="messages")) == 1
    before = lane.calls().count
    assert len(made(lane, resource="messages", shards=300)) == 300
    # It costs one request.
    assert lane.calls().count == before + 1
    # The list of users is one walk, however many shards are requested.
    assert len(made(lane, resource="users", shards=300)) == 1
    lane.world.add_users(1_000)
    assert len(made(lane, resource="messages")) == 3

    def of_any(page: Any) -> int:
        server = scripted(lambda request: answer(200, page))
        with server.client() as client:
            return len(live_shards(client, resource="messages"))

    # As many as requests that a client has in flight; also where the first user cannot be read.
    pages = [envelope(users(1), total=total) for total in (None, 0, 100_000)]
    assert [of_any(page) for page in (*pages, [])] == [16, 1, 16, 16]


def test_one_reading_of_the_list_serves_several_shards(lane):
    shards = made(lane, resource="messages", shards=5)
    with lane.client() as client:
        held = listed_ids(client, False)
    before = lane.calls("users").count
    listed = [each.read(listed=lambda *_: held) for each in shards]
    assert sum(len(listing.to_list()) for listing in listed) == lane.world.total_messages
    assert lane.calls("users").count == before


@pytest.mark.parametrize("odd", [None, -4])
def test_a_strict_reading_needs_a_proved_list_of_users(scripted, monkeypatch, odd):
    server = scripted(paged([*users(5), user(9, id=odd)]))
    monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
    with server.client() as client:
        [shard] = live_shards(client, resource="messages", shards=1)
        with pytest.raises(IncompleteError, match=r"no usable id|has no integer id"):
            listed_ids(client, True)
        assert len(listed_ids(client, False)) == 5
    with pytest.raises(IncompleteError):
        shard.read(strict=True)


def test_live_shards_hold_no_secret(lane, monkeypatch, tmp_path):
    shards = made(lane, resource="messages", shards=2)
    for each in shards:
        assert lane.secret.encode() not in pickle.dumps(each) + repr(each).encode()
    assert len({each.plan_id for each in shards}) == 1
    assert made(lane, resource="users")[0].plan_id != shards[0].plan_id
    monkeypatch.delenv("BACKREAD_API_SECRET")
    said = r"shard 1 of 2 travels .* set BACKREAD_API_SECRET"
    with pytest.raises(ConfigurationError, match=said):
        shards[1].read()
    (tmp_path / "secret").write_text(lane.secret)
    assert read_all(shards, secret_file=tmp_path / "secret") == expected(lane.world, "messages")
