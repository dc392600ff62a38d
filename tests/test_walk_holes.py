"""Lists with holes: rows that offsets count and pages do not show, and services that stop early."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from canned import envelope, ids, user, users
from scripted_server import Answer, Request, answer

ROWS = users(1_000)


def service(
    shown: Callable[[int, int], list[dict[str, Any]]],
    total: int | None,
    refused_from: int | None = None,
    status: int = 422,
) -> Callable[[Request], Answer]:
    """Answers pages with what ``shown`` has from one offset to another, and looks users up."""

    def respond(request: Request) -> Answer:
        if request.path != "/external/users":
            return answer(200, user(int(request.path.rsplit("/", 1)[1])))
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        if refused_from is not None and offset >= refused_from:
            return answer(status)
        page = envelope(shown(offset, offset + limit), limit=limit, offset=offset, total=total)
        return answer(200, page)

    return respond


def without(first: int, last: int) -> Callable[[int, int], list[dict[str, Any]]]:
    """All rows but those from one id to another, which are left out after pages were cut."""
    return lambda start, end: [row for row in ROWS[start:end] if not first <= row["id"] <= last]


def up_to(count: int) -> Callable[[int, int], list[dict[str, Any]]]:
    return lambda start, end: ROWS[start : min(end, count)]


def breaking_off(broken: int) -> Callable[[int, int], list[dict[str, Any]]]:
    """Each page ends before the row with this id."""

    def shown(start: int, end: int) -> list[dict[str, Any]]:
        return list(itertools.takewhile(lambda row: row["id"] != broken, ROWS[start:end]))

    return shown


def read(face: Any, scripted: Any, respond: Callable[[Request], Answer]) -> tuple[set[int], Any]:
    server = scripted(respond)
    listing = face.client(server).users.list()
    return set(ids(face.collect(listing))), listing.report


@pytest.mark.parametrize("total", [1_000, 800])
def test_rows_behind_a_stretch_that_is_left_out_are_read(face, scripted, total):
    held, report = read(face, scripted, service(without(201, 400), total))
    assert held == {*range(1, 201), *range(401, 1_001)}
    assert report.certificate == "uncertified"


def test_one_broken_row_costs_no_other(face, scripted):
    held, report = read(face, scripted, service(breaking_off(201), 1_000))
    assert held == {*range(1, 1_001)} - {201}
    assert report.certificate == "uncertified"


@pytest.mark.parametrize("status", [None, 400, 404, 416, 422])
def test_a_service_that_stops_before_its_total_proves_no_end(face, scripted, status):
    """As search engines do behind a window of so many rows."""
    respond = service(up_to(300), 1_000, None if status is None else 300, status or 0)
    held, report = read(face, scripted, respond)
    assert held == {*range(1, 301)}
    assert report.certificate == "uncertified"
    assert "700 short" in report.reason


def test_rows_that_differ_in_each_response_are_all_read(face, scripted):
    """As those with a signed address."""
    count = itertools.count()

    def shown(start: int, end: int) -> list[dict[str, Any]]:
        return [row | {"last_url": f"https://x/?{next(count)}"} for row in ROWS[start:end]]

    held, report = read(face, scripted, service(shown, 1_000))
    assert held == {*range(1, 1_001)}
    assert report.certificate == "uncertified"
