"""Rows and pages above `max_response_bytes`: the other rows are read, the large ones are named."""

from typing import Any

import pytest

from backread import ResponseTooLargeError
from helpers.api_rows import ids, message, paged
from helpers.scripted_server import Request, answer

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


@pytest.mark.parametrize("at", [0, 50, 99, 249])
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


@pytest.mark.parametrize("envelope", [{}, {"limit": 99}, {"limit": 99, "offset": 0}])
@pytest.mark.parametrize("at", [3, 60, 149])
def test_nothing_behind_a_large_row_is_lost_where_envelopes_say_little(face, reader, at, envelope):
    rows = messages(150, at)

    def service(request: Request) -> bytes:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        said = {**envelope, "offset": offset} if "offset" in envelope else envelope
        return answer(200, {**said, "messages": rows[offset : offset + limit]})

    _, client = reader(service)
    listing = client.messages.list(1)
    assert sorted(ids(face.collect(listing))) == [one for one in range(150) if one != at]
    assert f"the row at offset {at} is larger" in listing.report.reason


@pytest.mark.parametrize("first", [0, 40, 120])
def test_two_large_rows_side_by_side_end_the_list(face, reader, first):
    _, client = reader(messages(150, first, first + 1))
    listing = client.messages.list(1)
    with pytest.raises(ResponseTooLargeError, match=f"offset={first}&limit=1"):
        face.collect(listing)
    assert listing.report.certificate == "uncertified"
    assert listing.report.distinct == first


def test_a_list_of_large_rows_alone_cannot_be_read(face, reader):
    server, client = reader(messages(250, *range(250)))
    with pytest.raises(ResponseTooLargeError, match="limit=1"):
        face.collect(client.messages.list(1))
    assert len(server.requests) < 30
