"""A row that fails each page that it is part of, or is too large: the others are read, it is named.

Real services have such rows: one that no longer renders, or takes too long to. If it is in the
first page, nothing tells it from a service that is down; see
test_sync_around_failures.py.
"""

import random
from typing import Any

import pytest

from backread import (
    AuthenticationError,
    DeadlineExceededError,
    IncompleteError,
    ResponseTooLargeError,
    ServerError,
    plan,
)
from helpers.api_rows import failing, ids, message, paged, users
from helpers.scripted_server import RESET, Request, answer

KINDS = {"users": users(250), "messages": [message(number) for number in range(250)]}
FAILURES = {
    "500": answer(500, b"oops"),
    "504 of a proxy": answer(504, "<html>504 Gateway Time-out</html>"),
    "no JSON": answer(200, b'{"total": 250, "users": [<b>Fatal error</b>'),
    "ended early": answer(200, b'{"total"', {"Content-Length": "99"}),
    "reset": RESET,
}


def listing(client: Any, key: str, **options: Any) -> Any:
    return client.users.list(**options) if key == "users" else client.messages.list(42, **options)


@pytest.mark.parametrize(("key", "at"), [("users", 99), ("messages", 100)])
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


def test_failing_row_does_not_count_for_max_items_and_strict_raises(face, scripted):
    server = scripted(failing(KINDS["users"], "users", lambda page: 120 in page))
    users = face.client(server, max_retries=0).users
    assert len(face.collect(users.list(max_items=200))) == 200
    with pytest.raises(IncompleteError, match="the row at offset 120 fails"):
        face.collect(users.list(max_items=200, strict=True))


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


@pytest.mark.parametrize("kind", [AuthenticationError, DeadlineExceededError])
def test_a_search_ends_with_the_error_that_is_no_rows_fault(face, scripted, kind):
    whole = failing(KINDS["users"], "users", lambda page: 120 in page)

    def service(request: Request) -> Any:
        if request.query["limit"] != "1":
            return whole(request)
        return answer(401) if kind is AuthenticationError else server.stall()

    server = scripted(service)
    with pytest.raises(kind, match="limit=1"):
        face.collect(face.client(server, max_retries=0, deadline=3.0).users.list())
    assert len([one for one in server.requests if one.query["limit"] == "1"]) == 1


@pytest.mark.parametrize("at", [0, 120])
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


def test_a_failure_that_was_read_past_is_no_error_where_the_end_is_not_proved(face, scripted):
    rows = KINDS["users"]

    def service(request: Request) -> Any:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        page = {"users": rows[offset : offset + limit], "total": None}
        return answer(500) if offset <= 120 < offset + limit else answer(200, page)

    read = face.client(scripted(service), max_retries=0).users.list()
    assert len(face.collect(read)) == 249


@pytest.mark.parametrize("most", [99, 60, 12])
def test_no_row_that_can_be_read_is_ever_lost(face, scripted, most):
    """Whatever rows and lengths of pages fail; two side by side end the list, with the error."""
    chance = random.Random(most)
    for _ in range(14):
        bad = set(chance.choices([*range(99, 250), *range(185, 200)], k=chance.randrange(9)))
        check_nothing_lost(face, scripted, bad, most)


def check_nothing_lost(face: Any, scripted: Any, bad: set[int], most: int) -> None:
    rows = users(250)

    def fails(page: range) -> bool:
        return (page.start > 0 and len(page) > most) or bool(bad.intersection(page))

    read = face.client(scripted(failing(rows, "users", fails)), max_retries=0).users.list()
    try:
        got = ids(face.collect(read))
    except ServerError:
        assert any(one + 1 in bad for one in bad)
        return
    assert sorted(got) == [row["id"] for at, row in enumerate(rows) if at not in bad]
    assert read.report.unreadable_rows == len(bad)
    assert (read.report.certificate == "uncertified") == bool(bad)


# Rows above max_response_bytes are left out and named alike.

LIMIT = 40_000


def messages(count: int, *large: int) -> list[dict[str, Any]]:
    """Messages with the ids from 0 on, some of them above the limit."""
    texts = dict.fromkeys(large, "x" * 2 * LIMIT)
    return [message(number, body=texts.get(number, "x")) for number in range(count)]


@pytest.fixture
def reader(face: Any, scripted: Any) -> Any:
    """Makes a server of a list of messages, or of a function, and its client."""

    def make(service: Any) -> tuple[Any, Any]:
        server = scripted(service if callable(service) else paged(service, key="messages"))
        return server, face.client(server, max_retries=0, max_response_bytes=LIMIT)

    return make


def test_a_page_that_is_too_large_comes_in_parts(face, reader):
    server, client = reader([message(number, body="x" * 1_000) for number in range(250)])
    listing = client.messages.list(1)
    assert ids(face.collect(listing)) == list(range(250))
    assert listing.report.certificate in ("counted", "linked")
    assert listing.report.requests == len(server.requests)


@pytest.mark.parametrize("at", [0, 99])
def test_a_row_that_is_too_large_alone_is_left_out_and_named(face, reader, at):
    server, client = reader(messages(250, at))
    for as_dict in (False, True):
        listing = client.messages.list(1, as_dict=as_dict)
        assert sorted(ids(face.collect(listing))) == [one for one in range(250) if one != at]
        report = listing.report
        assert report.certificate == "uncertified"
        assert f"the row at offset {at} is larger than max_response_bytes" in report.reason
        assert report.unreadable_rows == 1
    assert len(server.requests) <= 2 * 24
    with pytest.raises(ResponseTooLargeError):
        face.call(client.messages.page, 1, max(0, at - 10))


@pytest.mark.parametrize("at", [3, 149])
def test_nothing_behind_a_large_row_is_lost_where_envelopes_say_little(face, reader, at):
    rows = messages(150, at)

    def service(request: Request) -> bytes:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        return answer(200, {"messages": rows[offset : offset + limit]})

    _, client = reader(service)
    listing = client.messages.list(1)
    assert sorted(ids(face.collect(listing))) == [one for one in range(150) if one != at]
    assert f"the row at offset {at} is larger" in listing.report.reason


@pytest.mark.parametrize("first", [0, 40, 120])
def test_large_rows_side_by_side_end_the_list(face, reader, first):
    server, client = reader(messages(150, *range(first, 150)))
    listing = client.messages.list(1)
    with pytest.raises(ResponseTooLargeError, match=f"offset={first}&limit=1"):
        face.collect(listing)
    assert listing.report.certificate == "uncertified"
    assert listing.report.distinct == first
    assert len(server.requests) < 30
