"""Lists as Python reads them: iteration, pages, reports, and the requests behind them.

What a walk proves of any list, however it changes or pages, is tested in src/core/walk/tests.
"""

import asyncio
import pickle
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backread import IncompleteError, StatusError
from backread.models import Page, WalkReport
from backread.testing import Lane
from helpers.api_rows import envelope, ids, message, paged, user, users
from helpers.scripted_server import Request, answer


def walk(face: Any, server: Any, **options: Any) -> tuple[list[int], WalkReport]:
    """The ids that a walk over the users gives, and its report."""
    listing = face.client(server, max_retries=0).users.list(**options)
    return ids(face.collect(listing)), listing.report


def audited(face: Any, lane: Lane) -> WalkReport:
    """The report of a walk over users as they change: none is lost, and all changes came."""
    rows, report = walk(face, lane, strict=True)
    assert lane.audit(rows).ok
    assert lane.waiting == 0
    return report


def test_a_list_on_one_page_is_a_snapshot_of_one_request(face, scripted):
    server = scripted(paged(users(98)))
    began = datetime.now(UTC)
    rows, report = walk(face, server)
    ended = datetime.now(UTC)
    assert rows == list(range(1, 99))
    assert len(server.requests) == 1
    assert began <= report.started_at <= report.ended_at <= ended + timedelta(milliseconds=1)
    assert report.started_at.tzinfo is UTC
    assert (report.requests, report.pages, report.rows, report.distinct) == (1, 1, 98, 98)
    assert (report.certificate, report.reason) == ("snapshot", None)


def test_users_on_several_pages_are_linked_by_the_rows_that_pages_share(each_face, scripted):
    server = scripted(paged(users(250)))
    rows, report = walk(each_face, server, strict=True)
    assert rows == list(range(1, 251))
    assert [one.query["offset"] for one in server.requests] == ["0", "96", "192"]
    assert (report.requests, report.pages, report.sweeps) == (3, 3, 1)
    assert (report.rows, report.distinct, report.repeats) == (256, 250, 6)
    assert (report.total_first, report.total_last) == (250, 250)
    assert (report.certificate, report.reason) == ("linked", None)
    assert report.evidence["links"] == sum(report.evidence.values()) == 2


def test_strict_gives_all_rows_and_raises_at_the_end_where_nothing_is_proved(each_face, scripted):
    server = scripted(paged(users(120), sent=20, total=300))
    listing = each_face.client(server).users.list(strict=True)
    assert ids(each_face.take(listing, 120)) == list(range(1, 121))
    with pytest.raises(IncompleteError) as caught:
        each_face.collect(listing)
    report = caught.value.report
    assert report == listing.report
    assert (report.distinct, report.certificate) == (120, "uncertified")
    for part in (report.reason, "/external/users", "strict=True"):
        assert part in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).report == report


@pytest.mark.parametrize("most", [0, 100])
def test_max_items_ends_the_walk_and_asks_for_no_more(each_face, scripted, most):
    """The last page: what is still needed, and the three rows that it shares."""
    server = scripted(paged(users(250)))
    rows, report = walk(each_face, server, max_items=most)
    assert rows == list(range(1, most + 1))
    limits = [int(one.query["limit"]) for one in server.requests]
    assert limits == {0: [], 100: [99, 4]}[most]
    assert report.certificate == "uncertified"
    assert f"max_items={most}" in report.reason


def test_pages_are_as_sent_but_for_repeats(each_face, scripted):
    first = envelope([user(1), user(2)], limit=2, total=4)
    second = envelope([user(2), user(3)], limit=2, offset=2, total=5)
    third = envelope([user(4)], limit=2, offset=4, total=5)
    server = scripted(*(answer(200, one) for one in (first, second, third)))
    listing = each_face.client(server).users.list(page_size=2)
    pages = each_face.pages(listing)
    assert all(isinstance(page, Page) for page in pages)
    assert [(one.limit, one.offset, one.total, ids(one)) for one in pages] == [
        (2, 0, 4, [1, 2]),
        (2, 2, 5, [3]),
        (2, 4, 5, [4]),
    ]
    assert listing.report.repeats == 1
    dicts = each_face.client(scripted(paged(users(3)))).users.list(as_dict=True)
    assert [page.items for page in each_face.pages(dicts)] == [tuple(users(3))]


def test_each_iteration_is_a_fresh_walk(each_face, scripted):
    rows = users(3)
    server = scripted(lambda request: paged(rows)(request))
    listing = each_face.client(server).users.list()
    assert ids(each_face.collect(listing)) == [1, 2, 3]
    first = listing.report
    rows.append(user(4))
    assert ids(each_face.collect(listing)) == [1, 2, 3, 4]
    assert len(server.requests) == 2
    assert (first.rows, listing.report.rows) == (3, 4)
    assert ids(each_face.call(listing.to_list)) == [1, 2, 3, 4]


def test_two_walks_over_one_listing_do_not_mix(face, scripted):
    listing = face.client(scripted(paged(users(250)))).users.list()
    pairs = [(one.id, other.id) for one, other in zip(listing, listing, strict=True)]
    assert pairs == [(number, number) for number in range(1, 251)]


def test_breaking_off_ends_the_requests(each_face, scripted):
    server = scripted(paged(users(10_000)))
    listing = each_face.client(server).users.list(page_size=10)
    assert ids(each_face.take(listing, 3)) == [1, 2, 3]
    sent = len(server.requests)
    # One page in hand and those fetched ahead; without an end to them there would be a thousand.
    assert sent < 10
    assert listing.report.certificate == "uncertified"
    assert listing.report.ended_at is None
    assert "end" in listing.report.reason
    each_face.collect(each_face.client(server).users.list(max_items=1))
    assert len(server.requests) <= sent + 2


def test_the_report_is_live_during_a_walk(face, scripted):
    listing = face.client(scripted(paged(users(300)))).users.list()
    before = listing.report
    assert (before.rows, before.started_at, before.ended_at) == (0, None, None)
    assert (before.certificate, before.reason) == ("uncertified", "not read yet")
    seen = [listing.report for _ in listing.pages()]
    assert 99 <= seen[0].rows <= 309
    assert seen[0].started_at is not None
    assert seen[0].certificate == "uncertified"
    assert [one.rows for one in seen] == sorted(one.rows for one in seen)
    assert (listing.report.rows, listing.report.distinct) == (309, 300)
    assert listing.report.ended_at is not None


def test_messages_are_walked_alike(face, scripted):
    rows = [message(one) for one in range(1, 131)]
    server = scripted(paged(rows, key="messages", at_most=50))
    listing = face.client(server).messages.list(42)
    read = face.collect(listing)
    assert ids(read) == list(range(1, 131))
    assert {one.user_id for one in read} == {42}
    assert [one.query["offset"] for one in server.requests] == ["0", "47", "94"]
    report = listing.report
    assert (report.requests, report.certificate, report.evidence["links"]) == (3, "counted", 2)
    assert {one.path for one in server.requests} == {"/external/users/42/messages"}


def test_a_listing_of_the_other_face_is_refused_by_for(scripted):
    server = scripted(paged(users(3)))
    with pytest.raises(TypeError, match="async for"):
        iter(server.async_client().users.list())
    with pytest.raises(TypeError):
        aiter(server.client().users.list())
    assert server.requests == []


def change_the_users(m: Lane) -> None:
    ids = m.world.user_ids()
    m.between_pages("users", after=1).delete(ids=ids[40:44]).add(2).edit(ids=[ids[97]], name="Ada")
    m.between_pages("users", after=2).delete(ids=ids[60:62])


@pytest.mark.parametrize("order", ["id", "newest"])
def test_no_row_is_lost_while_the_list_changes(face, backread_mock, order):
    m = backread_mock
    m.dialect = f"documented order={order}"
    change_the_users(m)
    report = audited(face, m)
    assert report.certificate == "linked"
    assert (report.evidence["missing_links"], report.evidence["inversions"]) == (0, 0)


def test_rows_that_a_later_page_should_show_are_fetched_by_id(face, backread_mock):
    m = backread_mock
    gone = m.world.user_ids()[96:98]
    m.between_pages("users", after=1).delete(ids=gone)
    report = audited(face, m)
    assert {call.user: call.status for call in m.calls("user")} == dict.fromkeys(gone, 404)
    assert report.certificate == "linked"
    assert (report.evidence["rows_gone"], report.evidence["rows_moved"]) == (2, 0)
    assert report.requests == len(m.journal)


def test_pages_of_a_long_list_are_requested_side_by_side(face, scripted):
    """Each page waits for another to be requested: one by one, none would be answered."""
    pages, barrier = paged(users(3_000)), threading.Barrier(2)

    def service(request: Request) -> bytes:
        if 96 * 16 <= int(request.query["offset"]) < 96 * 20:
            barrier.wait(timeout=60)
        return pages(request)

    rows, report = walk(face, scripted(service), strict=True)
    assert rows == list(range(1, 3_001))
    assert (report.certificate, report.evidence["links"], report.requests) == ("linked", 31, 32)


@pytest.mark.parametrize(("status", "first"), [(404, 0), (404, 120), (403, 120)])
def test_a_refused_offset_is_an_error_unless_it_may_lie_past_the_end(face, scripted, status, first):
    pages = paged(users(120), total=130)

    def service(request: Request) -> bytes:
        return answer(status) if int(request.query["offset"]) >= first else pages(request)

    server = scripted(service)
    if (status, first) == (404, 120):
        rows, report = walk(face, server)
        assert rows == list(range(1, 121))
        assert report.certificate == "linked"
        assert (report.evidence["rows_short"], report.pages) == (10, 3)
        return
    with pytest.raises(StatusError, match=f"offset={first}") as caught:
        walk(face, server)
    assert caught.value.status_code == status


@pytest.mark.parametrize("as_dict", [False, True])
def test_first_gives_one_item_for_one_request(each_face, scripted, as_dict):
    server = scripted(paged(users(250)))
    listing = each_face.client(server).users.list(strict=True, as_dict=as_dict)
    first = each_face.call(listing.first)
    assert (first["id"] if as_dict else first.id) == 1
    assert [each.target for each in server.requests] == ["/external/users?offset=0&limit=1"]
    assert (listing.report.requests, listing.report.certificate) == (1, "uncertified")


def test_first_is_none_if_there_is_no_item(face, scripted):
    client = face.client(scripted(paged([])))
    assert client.users.list().first() is None
    assert client.messages.list(42, max_items=0).first() is None


def test_count_is_the_total_that_the_service_states(each_face, scripted):
    server = scripted(paged(users(250)))
    listing = each_face.client(server).users.list(max_items=3)
    assert each_face.call(listing.count) == 250
    assert [each.target for each in server.requests] == ["/external/users?offset=0&limit=1"]
    without_total = each_face.client(scripted(paged([message(7)], key="messages", total=None)))
    assert each_face.call(without_total.messages.list(42).count) is None


def test_count_of_all_messages_says_what_counts_them(face, scripted):
    server = scripted(paged(users(2)))
    with pytest.raises(TypeError, match=r"mirror\.table\('conversations'\)"):
        face.client(server).messages.all().count()
    assert not server.requests


def test_an_async_listing_is_awaited_for_its_items(scripted):
    async def main() -> None:
        async with scripted(paged(users(250))).async_client() as client:
            listing = client.users.list()
            assert ids(await listing) == list(range(1, 251))
            assert listing.report.certificate == "linked"

    asyncio.run(main())
