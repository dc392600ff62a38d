"""Walks over services that page in odd ways: all rows once, an end, and no false proof."""

from __future__ import annotations

from typing import Any

import pytest

from canned import envelope, offsets, paged, user, users, walk
from scripted_server import answer


def test_a_server_that_applies_a_smaller_limit_rules(face: Any, scripted: Any) -> None:
    server = scripted(paged(users(180), at_most=50))
    rows, report = walk(face, server)
    assert rows == list(range(1, 181))
    assert offsets(server) == [0, 50, 100, 150]
    assert report.requests == 4


@pytest.mark.parametrize("total", [..., None, 10_000])
def test_pages_that_come_short_without_saying_so(face: Any, scripted: Any, total: Any) -> None:
    """It says that it applied 99, and sends 20: a short page is not the end of the list."""
    rows, report = walk(face, scripted(paged(users(130), sent=20, total=total)))
    assert rows == list(range(1, 131))
    assert report.certificate == "uncertified"


def test_a_total_of_null_is_tolerated(face: Any, scripted: Any) -> None:
    for count in (0, 50, 99, 230):
        rows, report = walk(face, scripted(paged(users(count), total=None)))
        assert rows == list(range(1, count + 1))
        assert (report.total_first, report.total_last) == (None, None)
        assert report.certificate == "uncertified"
        assert "no total" in report.reason


def test_an_envelope_of_rows_alone_is_tolerated(face: Any, scripted: Any) -> None:
    rows = users(120)

    def service(request: Any) -> bytes:
        offset = int(request.query["offset"])
        return answer(200, {"users": rows[offset : offset + 99]})

    read, report = walk(face, scripted(service))
    assert read == list(range(1, 121))
    assert report.certificate == "uncertified"


@pytest.mark.parametrize("total", [0, 1, 98, 99, 100, -5])
def test_a_total_that_is_too_small_cuts_nothing_off(face: Any, scripted: Any, total: int) -> None:
    rows, report = walk(face, scripted(paged(users(250), total=total)))
    assert rows == list(range(1, 251))
    assert report.certificate == "uncertified"
    assert report.total_last == total


def test_a_total_that_is_too_large_ends_and_says_how_many_are_short(
    face: Any, scripted: Any
) -> None:
    rows, report = walk(face, scripted(paged(users(250), total=260)))
    assert rows == list(range(1, 251))
    assert report.certificate == "uncertified"
    assert "10 short" in report.reason
    rows, report = walk(face, scripted(paged(users(50), total=51)))
    assert rows == list(range(1, 51))
    assert "1 short" in report.reason


def test_a_total_that_moves_is_reported_as_it_was_and_as_it_is(face: Any, scripted: Any) -> None:
    first = envelope(users(99), total=150)
    second = envelope([user(one) for one in range(100, 153)], offset=99, total=152)
    rows, report = walk(
        face,
        scripted(answer(200, first), answer(200, second), answer(200, {**second, "users": []})),
    )
    assert rows == list(range(1, 153))
    assert (report.total_first, report.total_last) == (150, 152)


def test_repeats_are_dropped_and_counted(face: Any, scripted: Any) -> None:
    """A row came in ahead of the second page, so that the last row of the first comes again."""
    first = envelope([user(one) for one in range(1, 100)], total=110)
    second = envelope([user(one) for one in range(99, 111)], offset=99, total=111)
    server = scripted(answer(200, first), answer(200, second), answer(200, envelope([], total=111)))
    rows, report = walk(face, server)
    assert rows == list(range(1, 111))
    assert (report.rows, report.distinct, report.repeats) == (111, 110, 1)
    assert report.certificate == "uncertified"
    assert "1 short" in report.reason


def test_a_page_that_repeats_itself_is_no_snapshot(face: Any, scripted: Any) -> None:
    server = scripted(lambda request: answer(200, envelope([user(1), user(1)], total=2)))
    rows, report = walk(face, server)
    assert rows == [1]
    assert report.certificate == "uncertified"


@pytest.mark.parametrize("total", [..., None, 10_000, 3])
def test_a_server_that_repeats_its_last_page_past_the_end_ends(
    face: Any, scripted: Any, total: Any
) -> None:
    rows = users(230)

    def service(request: Any) -> bytes:
        offset = min(int(request.query["offset"]), len(rows) - 32)
        claimed = len(rows) if total is ... else total
        return answer(200, envelope(rows[offset : offset + 99], offset=offset, total=claimed))

    server = scripted(service)
    read, report = walk(face, server)
    assert read == list(range(1, 231))
    assert report.certificate == "uncertified"
    assert len(server.requests) < 30


@pytest.mark.parametrize("total", [5, 99, None, 10**12])
def test_a_server_that_takes_no_notice_of_the_offset_ends(
    face: Any, scripted: Any, total: int | None
) -> None:
    server = scripted(lambda request: answer(200, envelope(users(99), total=total)))
    rows, report = walk(face, server)
    assert rows == list(range(1, 100))
    assert report.certificate == "uncertified"
    assert report.repeats >= 99
    assert len(server.requests) < 30


def test_a_server_that_goes_on_with_empty_pages_ends(face: Any, scripted: Any) -> None:
    server = scripted(lambda request: answer(200, envelope([], total=10**9)))
    rows, report = walk(face, server)
    assert rows == []
    assert report.certificate == "uncertified"
    assert len(server.requests) < 30
