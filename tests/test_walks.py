"""Walks over one list: every row once, and a report that says what is proved."""

import asyncio
import dataclasses
import pickle
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backread import AsyncClient, Client, IncompleteError
from backread.models import Page, WalkReport
from canned import envelope, ids, message, offsets, paged, user, users, walk
from scripted_server import answer
from waiting import wait_for


def test_a_list_on_one_page_is_a_snapshot_of_one_request(face, scripted):
    server = scripted(paged(users(98)))
    began = datetime.now(UTC)
    rows, report = walk(face, server)
    ended = datetime.now(UTC)
    assert rows == list(range(1, 99))
    assert len(server.requests) == 1
    assert began <= report.started_at <= report.ended_at <= ended + timedelta(milliseconds=1)
    assert report.started_at.tzinfo is UTC
    assert dataclasses.replace(report, started_at=None, ended_at=None) == WalkReport(
        requests=1,
        pages=1,
        rows=98,
        distinct=98,
        repeats=0,
        total_first=98,
        total_last=98,
        sweeps=1,
        repaired_text=0,
        certificate="snapshot",
        started_at=None,
        ended_at=None,
        reason=None,
        rows_short=0,
    )


def test_a_full_page_is_a_snapshot_once_a_second_request_brings_nothing(face, scripted):
    """Its total may be too small; see test_odd_paging."""
    server = scripted(paged(users(99)))
    rows, report = walk(face, server, strict=True)
    assert rows == list(range(1, 100))
    assert offsets(server) == [0, 96]
    assert (report.certificate, report.rows, report.distinct) == ("snapshot", 102, 99)
    assert (report.total_last, report.proving_requests) == (99, 0)


def test_an_empty_list_is_a_snapshot_too(face, scripted):
    rows, report = walk(face, scripted(paged([])), strict=True)
    assert rows == []
    assert (report.certificate, report.requests) == ("snapshot", 1)


def test_users_on_several_pages_are_linked_by_the_rows_that_pages_share(face, scripted):
    server = scripted(paged(users(250)))
    rows, report = walk(face, server, strict=True)
    assert rows == list(range(1, 251))
    assert offsets(server) == [0, 96, 192]
    assert dataclasses.replace(report, started_at=None, ended_at=None) == WalkReport(
        requests=3,
        pages=3,
        rows=256,
        distinct=250,
        repeats=6,
        total_first=250,
        total_last=250,
        sweeps=1,
        repaired_text=0,
        certificate="linked",
        started_at=None,
        ended_at=None,
        reason=None,
        links=2,
        rows_short=0,
    )


def test_a_list_without_a_total_is_linked_to_its_end(face, scripted):
    """Nothing follows the last page, and its last rows still stand where they stood."""
    server = scripted(paged(users(250), total=None))
    rows, report = walk(face, server)
    assert rows == list(range(1, 251))
    assert offsets(server) == [0, 96, 192, 250, 247]
    assert (report.requests, report.pages, report.rows, report.distinct) == (5, 5, 259, 250)
    assert (report.links, report.rows_short, report.proving_requests) == (3, None, 1)
    assert (report.certificate, report.reason) == ("linked", None)


def test_a_list_without_a_total_whose_pages_come_short_is_uncertified(face, scripted):
    rows, report = walk(face, scripted(paged(users(250), sent=20, total=None)))
    assert rows == list(range(1, 251))
    assert report.certificate == "uncertified"
    assert "250 rows were read" in report.reason
    assert "no total" in report.reason


def test_a_report_pickles_and_draws_itself(face, scripted):
    for sent, certificate, links in (
        (None, "linked", 1),
        (99, "linked", 2),
        (20, "uncertified", 8),
    ):
        total = ... if sent is None else None
        _, report = walk(face, scripted(paged(users(120), sent=sent, total=total)))
        assert pickle.loads(pickle.dumps(report)) == report
        drawn = report._repr_html_()
        assert "WalkReport <span" in drawn
        assert f" {certificate}</span></caption>" in drawn
        assert f'>links</th><td dir="auto">{links}</td>' in drawn


@pytest.mark.parametrize(
    ("count", "pages"),
    [(98, 1), (99, 2), (100, 2), (194, 2), (195, 3), (196, 3), (197, 3), (198, 3), (199, 3)],
)
def test_every_row_comes_once_at_the_edges_of_pages(face, scripted, count, pages):
    server = scripted(paged(users(count)))
    rows, report = walk(face, server, strict=True)
    assert rows == list(range(1, count + 1))
    assert offsets(server) == [0, 96, 192][:pages]
    assert report.repeats == 3 * (pages - 1)


def test_strict_raises_at_the_end_where_nothing_is_proved(face, scripted):
    server = scripted(paged(users(120), sent=20, total=None))
    listing = face.client(server).users.list(strict=True)
    with pytest.raises(IncompleteError) as caught:
        face.collect(listing)
    report = caught.value.report
    assert report == listing.report
    assert (report.distinct, report.certificate) == (120, "uncertified")
    assert report.reason in str(caught.value)
    for part in ("/external/users", "strict=True"):
        assert part in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).report == report


def test_strict_gives_all_rows_before_it_raises(face, scripted):
    server = scripted(paged(users(120), sent=20, total=None))
    listing = face.client(server).users.list(strict=True)
    assert ids(face.take(listing, 120)) == list(range(1, 121))


def test_strict_is_content_with_a_certificate_and_with_what_was_asked_for(face, scripted):
    for count, certificate in ((99, "snapshot"), (120, "linked")):
        rows, report = walk(face, scripted(paged(users(count))), strict=True)
        assert (len(rows), report.certificate) == (count, certificate)
    rows, report = walk(face, scripted(paged(users(99))), strict=True, max_items=5)
    assert rows == [1, 2, 3, 4, 5]
    assert report.certificate == "uncertified"


@pytest.mark.parametrize("most", [0, 1, 98, 99, 100, 195, 198, 199])
def test_max_items_ends_the_walk_and_asks_for_no_more(face, scripted, most):
    """The last page: what is still needed, and the three rows that it shares."""
    server = scripted(paged(users(250)))
    rows, report = walk(face, server, max_items=most)
    assert rows == list(range(1, most + 1))
    assert [int(one.query["limit"]) for one in server.requests] == {
        0: [],
        1: [1],
        98: [98],
        99: [99],
        100: [99, 4],
        195: [99, 99],
        198: [99, 99, 6],
        199: [99, 99, 7],
    }[most]
    assert report.certificate == "uncertified"
    assert f"max_items={most}" in report.reason


def test_max_items_that_leaves_nothing_out_is_no_matter(face, scripted):
    for most in (51, 1000, 2**63 - 1):
        rows, report = walk(face, scripted(paged(users(50))), max_items=most)
        assert len(rows) == 50
        assert report.certificate == "snapshot"


def test_max_items_holds_where_the_server_sends_more(face, scripted):
    server = scripted(lambda request: answer(200, envelope(users(99), total=500)))
    rows, report = walk(face, server, max_items=7)
    assert rows == [1, 2, 3, 4, 5, 6, 7]
    assert "max_items=7" in report.reason


def test_page_size_is_the_limit_of_each_request(face, scripted):
    server = scripted(paged(users(20)))
    rows, report = walk(face, server, page_size=7)
    assert rows == list(range(1, 21))
    assert [(one.query["offset"], one.query["limit"]) for one in server.requests] == [
        ("0", "7"),
        ("5", "7"),
        ("10", "7"),
        ("15", "7"),
    ]
    assert (report.pages, report.certificate) == (4, "linked")


def test_pages_too_small_to_share_rows_are_not_linked(face, scripted):
    server = scripted(paged(users(5)))
    rows, report = walk(face, server, page_size=2)
    assert rows == [1, 2, 3, 4, 5]
    assert offsets(server) == [0, 2, 4]
    assert (report.certificate, report.links, report.missing_links) == ("uncertified", 0, 2)
    assert "2 pages share no unchanged rows with the pages before" in report.reason


def test_pages_are_as_sent_but_for_repeats(face, scripted):
    first = envelope([user(1), user(2)], limit=2, total=4)
    second = envelope([user(2), user(3)], limit=2, offset=2, total=5)
    third = envelope([user(4)], limit=2, offset=4, total=5)
    server = scripted(*(answer(200, one) for one in (first, second, third)))
    listing = face.client(server).users.list(page_size=2)
    pages = face.pages(listing)
    assert all(isinstance(page, Page) for page in pages)
    assert [(one.limit, one.offset, one.total, ids(one)) for one in pages] == [
        (2, 0, 4, [1, 2]),
        (2, 2, 5, [3]),
        (2, 4, 5, [4]),
    ]
    assert listing.report.repeats == 1


def test_pages_of_dicts(face, scripted):
    pages = face.pages(face.client(scripted(paged(users(3)))).users.list(as_dict=True))
    assert [page.items for page in pages] == [tuple(users(3))]


def test_each_iteration_is_a_fresh_walk(face, scripted):
    rows = users(3)
    server = scripted(lambda request: paged(rows)(request))
    listing = face.client(server).users.list()
    assert ids(face.collect(listing)) == [1, 2, 3]
    first = listing.report
    rows.append(user(4))
    assert ids(face.collect(listing)) == [1, 2, 3, 4]
    assert len(server.requests) == 2
    assert (first.rows, listing.report.rows) == (3, 4)
    assert ids(face.call(listing.to_list)) == [1, 2, 3, 4]


def test_two_walks_over_one_listing_do_not_mix(face, scripted):
    listing = face.client(scripted(paged(users(250)))).users.list()
    if face.name == "sync":
        pairs = list(zip(listing, listing, strict=True))
    else:

        async def main() -> list[Any]:
            first, second = aiter(listing), aiter(listing)
            return [(one, await anext(second)) async for one in first]

        pairs = face.call(main)
    assert [(one.id, other.id) for one, other in pairs] == [(n, n) for n in range(1, 251)]


def test_breaking_off_ends_the_requests(face, scripted):
    server = scripted(paged(users(10_000)))
    listing = face.client(server).users.list(page_size=10)
    assert ids(face.take(listing, 3)) == [1, 2, 3]
    sent = len(server.requests)
    # One page in hand and those fetched ahead; without an end to them there would be a thousand.
    assert sent < 10
    assert listing.report.certificate == "uncertified"
    assert listing.report.ended_at is None
    assert "end" in listing.report.reason
    face.collect(face.client(server).users.list(max_items=1))
    assert len(server.requests) <= sent + 2


def test_few_pages_are_fetched_ahead_of_a_slow_reader(face, scripted):
    server = scripted(paged(users(10_000)))
    listing = face.client(server).users.list(page_size=10)
    most_ahead = 0

    def look(read: int) -> None:
        nonlocal most_ahead
        wait_for(lambda: len(server.requests) - read >= 2)
        time.sleep(0.01)
        most_ahead = max(most_ahead, len(server.requests) - read)

    if face.name == "sync":
        for read, _ in zip(range(10), listing.pages(), strict=False):
            look(read)
    else:

        async def main() -> None:
            read = 0
            async for _ in listing.pages():
                look(read)
                read += 1
                if read == 10:
                    break

        face.call(main)
    assert 2 <= most_ahead <= 5


def test_the_report_is_live_during_a_walk(face, scripted):
    listing = face.client(scripted(paged(users(300)))).users.list()
    before = listing.report
    assert (before.rows, before.started_at, before.ended_at) == (0, None, None)
    assert (before.certificate, before.reason) == ("uncertified", "not read yet")
    seen: list[WalkReport] = []
    if face.name == "sync":
        for _ in listing.pages():
            seen.append(listing.report)
    else:

        async def main() -> None:
            async for _ in listing.pages():
                seen.append(listing.report)

        face.call(main)
    during = seen[0]
    assert 99 <= during.rows <= 309
    assert during.started_at is not None
    assert during.certificate == "uncertified"
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
    assert offsets(server) == [0, 47, 94]
    report = listing.report
    assert (report.requests, report.certificate, report.links) == (3, "counted", 2)
    assert {one.path for one in server.requests} == {"/external/users/42/messages"}


def test_ids_of_any_64_bits_are_told_apart(face, scripted):
    numbers = [2**63 - 1, 0, -1, -(2**63), 1, 2**62]
    rows, report = walk(face, scripted(paged([user(one) for one in numbers])))
    assert rows == numbers
    assert report.certificate == "snapshot"


def test_a_listing_of_the_other_face_is_refused_by_for(scripted):

    server = scripted(paged(users(3)))
    arguments = (server.url, server.secret, server.vendor)
    with pytest.raises(TypeError):
        iter(AsyncClient(*arguments).users.list())  # type: ignore[call-overload]

    async def main() -> None:
        async for _ in Client(*arguments).users.list():  # type: ignore[attr-defined]
            pass

    with pytest.raises(TypeError):
        asyncio.run(main())
    assert server.requests == []
