"""Walks over services that page in odd ways: all rows once, an end, and no false proof."""

from typing import Any

import pytest

from backread import StatusError
from canned import envelope, offsets, paged, user, users, walk
from scripted_server import answer


def test_a_server_that_applies_a_smaller_limit_rules(face, scripted):
    server = scripted(paged(users(180), at_most=50))
    rows, report = walk(face, server)
    assert rows == list(range(1, 181))
    assert offsets(server) == [0, 47, 94, 141]
    assert (report.requests, report.certificate) == (4, "linked")


@pytest.mark.parametrize(
    ("total", "certificate"),
    [(..., "linked"), (None, "uncertified"), (10_000, "uncertified")],
)
def test_pages_that_come_short_without_saying_so(face, scripted, total, certificate):
    """It says that it applied 99, and sends 20: a short page is not the end of the list."""
    rows, report = walk(face, scripted(paged(users(130), sent=20, total=total)))
    assert rows == list(range(1, 131))
    assert (report.certificate, report.links) == (certificate, 8)


def test_a_total_of_null_is_tolerated(face, scripted):
    for count in (0, 50, 99, 230):
        rows, report = walk(face, scripted(paged(users(count), total=None)))
        assert rows == list(range(1, count + 1))
        assert (report.total_first, report.total_last) == (None, None)
        # Of a list without rows, none shows where it ends.
        assert report.certificate == ("linked" if count else "uncertified")
        assert count or "no total" in report.reason


def test_an_envelope_of_rows_alone_is_tolerated(face, scripted):
    rows = users(120)

    def service(request: Any) -> bytes:
        offset = int(request.query["offset"])
        return answer(200, {"users": rows[offset : offset + 99]})

    read, report = walk(face, scripted(service))
    assert read == list(range(1, 121))
    assert report.certificate == "uncertified"


@pytest.mark.parametrize("total", [0, 1, 98, 99, 100, -5])
def test_a_total_that_is_too_small_cuts_nothing_off(face, scripted, total):
    rows, report = walk(face, scripted(paged(users(250), total=total)))
    assert rows == list(range(1, 251))
    assert report.certificate == "linked"
    assert report.total_last == total


def test_a_total_that_is_too_large_ends_and_says_how_many_are_short(face, scripted):
    rows, report = walk(face, scripted(paged(users(250), total=260)))
    assert rows == list(range(1, 251))
    assert (report.certificate, report.rows_short) == ("linked", 10)
    rows, report = walk(face, scripted(paged(users(50), total=51)))
    assert rows == list(range(1, 51))
    assert (report.certificate, report.rows_short) == ("linked", 1)
    rows, report = walk(face, scripted(paged(users(250), sent=20, total=260)))
    assert rows == list(range(1, 251))
    assert report.certificate == "uncertified"
    assert "10 short" in report.reason


def test_a_total_that_moves_is_reported_as_it_was_and_as_it_is(face, scripted):
    first = envelope(users(99), total=150)
    second = envelope([user(one) for one in range(97, 153)], offset=96, total=152)
    rows, report = walk(face, scripted(answer(200, first), answer(200, second)))
    assert rows == list(range(1, 153))
    assert (report.total_first, report.total_last) == (150, 152)
    assert report.certificate == "linked"


def test_repeats_are_dropped_and_counted(face, scripted):
    """A row came in ahead of the second page, so that one more than the shared rows comes again.

    It was not there from start to end, so that nothing is missing without it.
    """
    first = envelope(users(99), total=110)
    second = envelope([user(one) for one in range(96, 111)], offset=96, total=111)
    server = scripted(*(answer(200, one) for one in (first, second)))
    rows, report = walk(face, server)
    assert rows == list(range(1, 111))
    assert (report.rows, report.distinct, report.repeats) == (114, 110, 4)
    assert (report.certificate, report.rows_short) == ("linked", 1)


def test_a_row_that_moved_to_the_start_is_looked_for_there(face, scripted):
    """It was there all the time, and the total, which never changed, counts it."""
    moved = [105, *range(1, 105), *range(106, 111)]
    first = envelope(users(99), total=110)
    second = envelope([user(one) for one in moved[96:]], offset=96, total=110)
    start = envelope([user(one) for one in moved[:99]], total=110)
    server = scripted(*(answer(200, one) for one in (first, second, start)))
    rows, report = walk(face, server)
    assert rows == [*range(1, 105), *range(106, 111), 105]
    assert offsets(server) == [0, 96, 0]
    assert (report.certificate, report.rows_short, report.proving_requests) == ("linked", 0, 1)


def test_a_page_that_repeats_itself_is_no_snapshot(face, scripted):
    server = scripted(lambda request: answer(200, envelope([user(1), user(1)], total=2)))
    rows, report = walk(face, server)
    assert rows == [1]
    assert report.certificate == "uncertified"


@pytest.mark.parametrize(
    ("total", "certificate"),
    [(..., "linked"), (None, "linked"), (10_000, "uncertified"), (3, "uncertified")],
)
def test_a_server_that_repeats_its_last_page_past_the_end_ends(face, scripted, total, certificate):
    rows = users(230)

    def service(request: Any) -> bytes:
        offset = min(int(request.query["offset"]), len(rows) - 32)
        claimed = len(rows) if total is ... else total
        return answer(200, envelope(rows[offset : offset + 99], offset=offset, total=claimed))

    server = scripted(service)
    read, report = walk(face, server)
    assert read == list(range(1, 231))
    assert report.certificate == certificate
    assert report.requests == len(server.requests) < 30


def refusing(status: int) -> Any:
    """A service over 120 users that says ten too many, and refuses what lies past them."""

    def service(request: Any) -> bytes:
        if int(request.query["offset"]) >= 120:
            return answer(status, b"no such page")
        return paged(users(120), total=130)(request)

    return service


@pytest.mark.parametrize("status", [400, 404, 416, 422])
def test_an_offset_past_the_end_may_be_refused(face, scripted, status):
    server = scripted(refusing(status))
    rows, report = walk(face, server)
    assert rows == list(range(1, 121))
    assert offsets(server) == [0, 96, 120, 117]
    assert (report.certificate, report.rows_short, report.requests) == ("linked", 10, 4)


def test_a_refusal_is_no_page(face, scripted):
    _, report = walk(face, scripted(refusing(404)))
    assert (report.requests, report.pages) == (4, 3)


@pytest.mark.parametrize("status", [401, 403, 405, 410])
def test_another_refusal_is_an_error(face, scripted, status):
    with pytest.raises(StatusError, match="offset=120") as caught:
        walk(face, scripted(refusing(status)))
    assert caught.value.status_code == status


@pytest.mark.parametrize("status", [400, 404, 416, 422])
def test_a_list_that_is_refused_from_its_start_is_an_error(face, scripted, status):
    with pytest.raises(StatusError) as caught:
        walk(face, scripted(answer(status, b"no such list")))
    assert caught.value.status_code == status


@pytest.mark.parametrize("total", [5, 99, None, 10**12])
def test_a_server_that_takes_no_notice_of_the_offset_ends(face, scripted, total):
    server = scripted(lambda request: answer(200, envelope(users(99), total=total)))
    rows, report = walk(face, server)
    assert rows == list(range(1, 100))
    assert report.certificate == "uncertified"
    assert report.repeats >= 99
    assert len(server.requests) < 30


def test_a_server_that_goes_on_with_empty_pages_ends(face, scripted):
    server = scripted(lambda request: answer(200, envelope([], total=10**9)))
    rows, report = walk(face, server)
    assert rows == []
    assert report.certificate == "uncertified"
    assert len(server.requests) < 30
