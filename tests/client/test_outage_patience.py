"""Outages as a caller sees them: a longer read, two log records, the report.

When an outage begins, who probes and when it ends is tested in src/core/client/tests.rs.
"""

import logging
import pickle
import threading
import time

import pytest

import backread
from backread.testing import Fault
from helpers.api_rows import envelope, ids, message, paged, users
from helpers.scripted_server import HANG_UP, Answer, Request, answer

MAINTENANCE = "/maintenance"


class Service:
    """60 users with a message each; down for ``seconds`` once ``after`` requests were answered."""

    def __init__(self, after: int, seconds: float, status: int = 502) -> None:
        self._after, self._seconds, self._status = after, seconds, status
        self._lock = threading.Lock()
        self._answered = 0
        self._until: float | None = None
        self.refused = 0
        self._users = paged(users(60))

    def __call__(self, request: Request) -> Answer:
        if request.path == MAINTENANCE:
            return answer(503)
        with self._lock:
            if self._answered == self._after and self._until is None:
                self._until = time.monotonic() + self._seconds
            if self._until is not None and time.monotonic() < self._until:
                self.refused += 1
                if self._status == 302:
                    return answer(302, headers={"location": MAINTENANCE})
                return HANG_UP if self._status == 0 else answer(self._status)
            self._answered += 1
        if request.path == "/external/users":
            return self._users(request)
        return answer(200, envelope([message(int(request.path.split("/")[3]))], key="messages"))


# 530 is Cloudflare's.
@pytest.mark.parametrize("status", [0, 503, 530])
def test_messages_all_outlasts_an_outage(face, scripted, caplog, status):
    caplog.set_level(logging.DEBUG, "backread")
    service = Service(20, 1.2, status)
    server = scripted(service)
    listing = face.client(server).messages.all()
    assert sorted(ids(face.collect(listing))) == list(range(1, 61))
    # What was under way, 16 at most, and a second time the first of them; then some probes.
    # A request whose connection closes is sent again at once, and a 503 may also mean "too fast",
    # so that retries go on for half a second. A loaded machine makes the outage, and its probes,
    # longer.
    probes = 4 + 2 * int(max(0, listing.report.outage_seconds - 2))
    assert service.refused <= {0: 2 * (16 + 1 + probes), 503: 16 * 5, 530: 16 + 1 + probes}[status]
    assert listing.report.outage_seconds >= 1.0
    began, ended = [one.getMessage() for one in caplog.records if one.levelno >= logging.INFO]
    assert began.startswith(server.url)
    assert "has stopped answering" in began
    assert "answers again" in ended
    assert server.secret not in began
    # At DEBUG each request has its record, none twice.
    requests = [record for record in caplog.records if record.levelno == logging.DEBUG]
    assert len(requests) == len(server.requests)


def test_a_redirect_to_a_page_of_maintenance_is_part_of_it(face, scripted, caplog):
    caplog.set_level(logging.INFO, "backread")
    server = scripted(Service(1, 3, 302))
    client = face.client(server, outage_patience=60)
    for _ in range(2):
        assert len(face.call(client.messages.page, 1)) == 1
    said = [record.getMessage() for record in caplog.records]
    assert sum("has stopped answering" in text for text in said) == 1
    assert sum("answers again" in text for text in said) == 1


def test_walk_report_has_outage_seconds(face, mock):
    client = face.client(mock)
    face.call(client.users.page)
    mock.on("any").fail(Fault.reset(), times=9, each=True)
    listing = client.users.list()
    face.collect(listing)
    report = listing.report
    assert report.outage_seconds > 5
    assert report.certificate == "linked"
    assert report.requests > 3 + 9
    assert backread.WalkReport.from_json(report.to_json()) == report
    assert pickle.loads(pickle.dumps(report)) == report


def test_outage_patience_ends_the_wait(face, mock):
    client = face.client(mock)
    face.call(client.users.page)
    mock.on("users").fail(Fault.status(504))
    before = mock.clock.now
    hint = r"outage_patience of 60 s is used up .*; raise outage_patience= to wait longer"
    with pytest.raises(backread.ServerError, match=hint):
        face.call(client.users.page)
    assert 60 <= (mock.clock.now - before).total_seconds() < 62
    impatient = client.with_options(outage_patience=0)
    with pytest.raises(backread.ServerError) as caught:
        face.call(impatient.users.page)
    assert len(caught.value.attempts) == 6


def test_a_sync_says_how_long_it_waited(scripted, tmp_path):
    pytest.importorskip("duckdb")
    mirror = backread.Mirror(tmp_path / "chats")
    server = scripted(Service(20, 1.2))
    with backread.Client(server.url, server.secret, server.vendor) as client:
        report = mirror.sync(client)
    assert report.messages == 60
    assert report.outage_seconds >= 1.0
    assert mirror.sql("select outage_seconds from runs").fetchall() == [(report.outage_seconds,)]


def test_a_service_that_is_down_for_good_is_one_record_before_the_error(face, scripted, caplog):
    caplog.set_level(logging.INFO, "backread")
    with pytest.raises(backread.ServerError):
        face.call(face.client(scripted(*[answer(502)] * 4), max_retries=3).users.page)
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith("GET /external/users")
    assert "(attempt 1), retry in" in said
