"""A row that fails each page that it is part of: the others are read, and it is named.

Real services have such rows: one that no longer renders, or takes too long to. If it is in the
first page, nothing tells it from a service that is down; see
test_sync_around_failures.py.
"""

import itertools
from typing import Any

import pytest

from backread import (
    AuthenticationError,
    DeadlineExceededError,
    IncompleteError,
    ServerError,
    plan,
)
from helpers.api_rows import failing, ids, message, paged, users
from helpers.scripted_server import Break, Request, answer

KINDS = {"users": users(250), "messages": [message(number) for number in range(250)]}
FAILURES = {
    "500": answer(500, b"oops"),
    "504 of a proxy": answer(504, "<html>504 Gateway Time-out</html>"),
    "no JSON": answer(200, b'{"total": 250, "users": [<b>Fatal error</b>'),
    "ended early": answer(200, b'{"total"', {"Content-Length": "99"}),
    "reset": Break.RESET,
}


def listing(client: Any, key: str, **options: Any) -> Any:
    return client.users.list(**options) if key == "users" else client.messages.list(42, **options)


@pytest.mark.parametrize(("key", "at"), [("users", 99), ("messages", 100), ("users", 249)])
def test_list_leaves_out_and_names_a_failing_row(face, scripted, key, at):
    rows = KINDS[key]
    server = scripted(failing(rows, key, lambda page: at in page))
    client = face.client(server, max_retries=1)
    for as_dict in (False, True):
        read = listing(client, key, as_dict=as_dict)
        expected = [one["id"] for number, one in enumerate(rows) if number != at]
        assert sorted(ids(face.collect(read))) == expected
        assert read.report.certificate == "uncertified"
        assert f"the row at offset {at} fails each page that it is part of" in read.report.reason
        assert read.report.unreadable_rows == 1
        assert read.report.total_last == 250
    assert read.report.requests * 2 == len(server.requests) < 2 * 30


@pytest.mark.parametrize("failure", FAILURES)
def test_list_leaves_out_a_failing_row_for_each_failure(face, scripted, failure):
    service = failing(KINDS["users"], "users", lambda page: 120 in page, FAILURES[failure])
    client = face.client(scripted(service), max_retries=0)
    read = client.users.list()
    assert len(face.collect(read)) == 249
    assert "the row at offset 120 fails" in read.report.reason


def test_a_row_that_can_be_read_a_moment_later_is_no_such_row(face, scripted):
    """One that fails five times: with its page, in two searches, and twice alone."""
    failures = iter(range(5))

    def fails(page: range) -> bool:
        return page.start <= 120 < page.stop and next(failures, None) is not None

    read = face.client(
        scripted(failing(KINDS["users"], "users", fails)), max_retries=0
    ).users.list()
    assert len(face.collect(read)) == 250
    assert read.report.unreadable_rows == 0
    assert next(failures, None) is None


@pytest.mark.parametrize("strict", [True, False])
def test_failing_row_does_not_count_for_max_items_and_strict_raises(face, scripted, strict):
    server = scripted(failing(KINDS["users"], "users", lambda page: 120 in page))
    read = face.client(server, max_retries=0).users.list(max_items=200, strict=strict)
    if strict:
        with pytest.raises(IncompleteError, match="the row at offset 120 fails"):
            face.collect(read)
    else:
        assert len(face.collect(read)) == 200
        assert "the row at offset 120 fails" in read.report.reason


@pytest.mark.parametrize("at", [100, 130])
def test_rows_deleted_after_it_was_left_out_take_no_others_with_them(face, scripted, at):
    rows = users(900)
    requests = itertools.count(1)

    def service(request: Request) -> Any:
        if next(requests) == 24:
            del rows[210:220]
        fails = failing(rows, "users", lambda page: at in page)
        return fails(request)

    read = face.client(scripted(service), max_retries=0, max_concurrency=1).users.list()
    got = set(ids(face.collect(read)))
    missed = {row["id"] for row in rows} - got - {rows[at]["id"]}
    assert missed == set()
    assert read.report.certificate == "uncertified"


def test_a_list_whose_rest_fails_ends_with_the_error_of_its_page(face, scripted):
    server = scripted(failing(KINDS["users"], "users", lambda page: page.stop > 120))
    read = face.client(server, max_retries=1).users.list()
    with pytest.raises(ServerError, match="offset=") as caught:
        face.collect(read)
    # Those of the page, and of the search for what can be read of it.
    assert len(caught.value.attempts) == 5
    assert read.report.certificate == "uncertified"
    assert read.report.requests == len(server.requests) < 30


def test_a_first_page_that_fails_is_an_error_at_once(face, scripted):
    server = scripted(failing(KINDS["users"], "users", lambda page: 0 in page))
    with pytest.raises(ServerError, match=r"offset=0&limit=99"):
        face.collect(face.client(server, max_retries=1).users.list())
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [408, 429])
def test_a_408_or_429_in_a_search_is_no_end_of_it(face, scripted, status):
    """408 is what a proxy says to a connection that was idle too long (RFC 9110, 15.5.9)."""
    refused = iter([True])
    whole = failing(KINDS["users"], "users", lambda page: 120 in page)

    def service(request: Request) -> Any:
        if request.query["limit"] != "99" and next(refused, False):
            return answer(status, b"", {"Retry-After": "0"})
        return whole(request)

    # One retry, which only a 429 gets here.
    read = face.client(scripted(service), max_retries=1, max_concurrency=1).users.list()
    assert len(face.collect(read)) == 249
    assert read.report.unreadable_rows == 1


@pytest.mark.parametrize("empty", [{150}, range(150, 157), {99}])
def test_an_empty_page_among_short_ones_is_not_requested_for_ever(face, scripted, empty):
    """As of a service that filters rows after it took the page."""
    requests = itertools.count()
    too_long = failing(KINDS["users"], "users", lambda page: page.start > 0 and len(page) > 5)
    nothing = paged(KINDS["users"][250:], total=250)

    def service(request: Request) -> Any:
        assert next(requests) < 1_000
        return (nothing if int(request.query["offset"]) in empty else too_long)(request)

    read = face.client(scripted(service), max_retries=0).users.list()
    got = set(ids(face.collect(read)))
    assert len(got) >= 250 - len(empty)
    assert read.report.certificate == "uncertified"


def test_a_search_ends_with_the_error_that_is_no_rows_fault(face, scripted):
    whole = failing(KINDS["users"], "users", lambda page: 120 in page)

    def service(request: Request) -> Any:
        return answer(401) if request.query["limit"] == "1" else whole(request)

    with pytest.raises(AuthenticationError, match="limit=1"):
        face.collect(face.client(scripted(service), max_retries=0).users.list())


def test_a_search_ends_with_the_deadline(face, scripted):
    whole = failing(KINDS["users"], "users", lambda page: 120 in page)

    def service(request: Request) -> Any:
        return server.stall() if request.query["limit"] == "1" else whole(request)

    server = scripted(service)
    with pytest.raises(DeadlineExceededError):
        face.collect(face.client(server, max_retries=0, deadline=3.0).users.list())
    assert len([one for one in server.requests if one.query["limit"] == "1"]) == 1


@pytest.mark.parametrize("at", [0, 40, 120, 249])
def test_shard_leaves_out_a_failing_row(scripted, at):
    failing_now: set[int] = set()
    rows = KINDS["users"]

    def service(request: Request) -> Any:
        if request.path.endswith(f"/{rows[at]['id']}") and failing_now:
            return FAILURES["500"]
        return failing(rows, "users", lambda page: bool(failing_now.intersection(page)))(request)

    with scripted(service).client(max_retries=0) as client:
        shards = list(plan(client, resource="users", shards=2))
        failing_now.add(at)
        listings = [shard.read(client) for shard in shards]
        read = [one for listing in listings for one in ids(listing.to_list())]
    assert sorted(read) == sorted(row["id"] for row in rows if row is not rows[at])
    certificates = sorted(listing.report.certificate for listing in listings)
    assert certificates == ["linked", "uncertified"]


@pytest.mark.parametrize("total", [None, 400])
@pytest.mark.parametrize("fails_for_good", [True, False])
def test_a_failure_that_was_read_past_is_no_error_where_the_end_is_not_proved(
    face, scripted, total, fails_for_good
):
    rows = KINDS["users"]
    failures = itertools.count()

    def service(request: Request) -> Any:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        page = rows[offset : offset + limit]
        if offset <= 120 < offset + limit and (fails_for_good or next(failures) < 1):
            return answer(500, b"oops")
        return answer(200, {"users": page, "total": total})

    read = face.client(scripted(service), max_retries=0).users.list()
    assert len(face.collect(read)) == (249 if fails_for_good else 250)
