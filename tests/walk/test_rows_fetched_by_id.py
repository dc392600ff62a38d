"""Rows that are fetched by id to prove a list: what they prove, and what their failure costs."""

from typing import Any

import pytest

from backread import IncompleteError
from helpers.api_rows import message, user
from helpers.scripted_server import Request, answer

FOREIGN = (100, 101)
HIDDEN = (150, 151)
OWN = [number for number in range(1, 303) if number not in FOREIGN]


class Ties:
    """A user's messages with equal times: ties hide two, and ids 100 and 101 are not theirs."""

    def __init__(self, look_up: Any) -> None:
        self.look_up = look_up
        self.late: list[int] = []

    def __call__(self, request: Request) -> bytes:
        parts = request.path.split("/")
        if len(parts) == 6:
            row = self.look_up(self, int(parts[5]))
            return answer(404, {}) if row is None else answer(200, row)
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        rows = [number for number in OWN if number not in HIDDEN]
        rows = [*HIDDEN, *rows] if offset > 1 else [*rows, *HIDDEN]
        if offset > 1 and offset % 2 == 0:
            place = rows.index(97)
            rows[place - 1 : place + 1] = reversed(rows[place - 1 : place + 1])
        rows += self.late
        page = [message(number) for number in rows[offset : offset + limit]]
        total = len(OWN) + len(self.late)
        return answer(200, {"limit": limit, "offset": offset, "total": total, "messages": page})


def of_any_user(service: Ties, number: int) -> Any:
    sender = {"id": 2 if number in FOREIGN else 1}
    return message(number, sender_type="user", sender=sender)


def committed_late(service: Ties, number: int) -> Any:
    service.late = list(FOREIGN)
    return message(number) if number in {*OWN, *service.late} else None


def test_messages_of_other_users_are_not_taken_for_found_ones(face, scripted):
    listing = face.client(scripted(Ties(of_any_user))).messages.list(1)
    read = {each.id for each in face.collect(listing)}
    assert not read & {*FOREIGN}
    assert listing.report.certificate == "uncertified"
    assert "may belong to other users" in listing.report.reason
    strict = face.client(scripted(Ties(of_any_user))).messages.list(1, strict=True)
    with pytest.raises(IncompleteError):
        face.collect(strict)


def test_a_message_that_comes_after_all_totals_does_not_fill_a_gap(face, scripted):
    listing = face.client(scripted(Ties(committed_late))).messages.list(1)
    read = {each.id for each in face.collect(listing)}
    missing = {*OWN} - read
    assert not missing or listing.report.certificate == "uncertified"


LOOK_UPS = {
    "500": lambda server: answer(500, {}),
    "too large": lambda server: answer(200, user(98, name="x" * 400_000)),
    "no answer in time": lambda server: server.stall(),
    "no answer": lambda server: b"",
    "cut": lambda server: answer(200, user(98))[:-20],
}


@pytest.mark.parametrize("how", LOOK_UPS)
def test_a_failed_look_up_costs_the_proof_and_no_row(face, scripted, how):
    pages = 0

    def service(request: Request) -> Any:
        nonlocal pages
        if request.path.endswith("/98"):
            return LOOK_UPS[how](server)
        pages += 1
        rows = [number for number in range(1, 251) if pages == 1 or number != 98]
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        page = [user(number) for number in rows[offset : offset + limit]]
        sent = {"limit": limit, "offset": offset, "total": len(rows), "users": page}
        return answer(200, sent)

    server = scripted(service)
    options = {"max_retries": 0, "timeout": 0.5, "outage_patience": 0.0}
    listing = face.client(server, max_response_bytes=200_000, **options).users.list()
    assert len(face.collect(listing)) == 250
    assert listing.report.certificate == "uncertified"
    assert "requests for proof were refused" in listing.report.reason
