"""Rows that a later page should have shown and did not: the walk asks for them by id."""

import pytest

from backread.testing import Fault, World
from canned import audited, envelope, ids, users
from scripted_server import Request, answer


def test_rows_that_a_later_page_should_have_shown_are_asked_for_by_id(face, backread_mock):
    m = backread_mock
    gone = m.world.user_ids()[96:98]
    m.between_pages("users", after=1).delete(ids=gone)
    _, report = audited(face, m, strict=True)
    assert {call.user: call.status for call in m.calls("user")} == dict.fromkeys(gone, 404)
    assert (report.certificate, report.rows_gone, report.rows_moved) == ("linked", 2, 0)
    assert report.proving_requests >= 2
    assert report.requests == len(m.journal)


@pytest.mark.parametrize("status", [403, 410])
def test_a_row_that_may_not_be_asked_for_by_id_is_a_doubt_and_no_error(face, backread_mock, status):
    m = backread_mock
    m.between_pages("users", after=1).delete(ids=m.world.user_ids()[96:98])
    m.on("user").fail(f"status({status})")
    _, report = audited(face, m)
    assert report.certificate == "uncertified"


def test_many_rows_that_are_gone_are_not_all_asked_for(face, backread_server):
    with backread_server.lane(world=World(seed=1, users=800)) as m:
        m.between_pages("users", after=1).delete(ids=m.world.user_ids()[2:98])
        _, report = audited(face, m, strict=True)
    # The total fell by as many as are no longer shown.
    assert (report.certificate, report.rows_gone, report.total_last) == ("linked", 16, 704)


def test_many_rows_that_moved_are_a_doubt_though_not_all_are_asked_for(face, scripted):
    rows = users(400)
    order = list(range(400))

    def service(request: Request) -> bytes:
        nonlocal order
        if "offset" not in request.query:
            found = [
                row for row in (rows[at] for at in order) if request.path.endswith(f"/{row['id']}")
            ]
            return answer(200, found[0]) if found else answer(404, b"gone")
        offset = int(request.query["offset"])
        page = [rows[at] for at in order][offset : offset + 99]
        body = answer(200, envelope(page, offset=offset, total=len(order)))
        if offset == 0 and len(order) == 400:
            # Of the page's last rows the first are deleted; the others move away, as they are.
            moved = [*range(79, 99), 300]
            kept = [at for at in order if at not in moved and not 59 <= at < 79]
            order = [*moved, *kept]
        return body

    listing = face.client(scripted(service)).users.list()
    face.collect(listing)
    assert listing.report.certificate == "uncertified"


@pytest.mark.parametrize("body", ["null", "[]", "not json"])
def test_a_look_up_that_gives_no_row_is_a_doubt_and_no_error(face, backread_mock, body):
    m = backread_mock
    m.between_pages("users", after=1).delete(ids=m.world.user_ids()[96:98])
    m.on("user").fail(Fault.status(200, body=body))
    listing = face.client(m, max_retries=0).users.list()
    audit = m.audit(ids(face.collect(listing)))
    assert audit.ok
    assert listing.report.certificate == "uncertified"
    assert "requests for proof were refused" in listing.report.reason
