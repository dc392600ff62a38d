"""`Mirror(retention=...)`: rows that are gone from the service are removed after that time."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from backread import AuthenticationError
from backread.mirror import Mirror
from backread.mirror.rights import purge
from backread.testing import MockServer
from helpers.api_rows import message, user
from helpers.file_traces import traces
from helpers.mirrors import BatchSource, batch, ended, marked, missed, rows, sync
from helpers.probed_service import Rows

MARKS = ["name-Zoë-77d", "body-Zoë-77d", "gone-Zoë-77d"]


@pytest.fixture
def gone(mirror: Mirror, server: MockServer) -> tuple[int, Any]:
    """A user who is gone, as the mirror knows, like a message of another; and the world before."""
    world = server.world
    user_id, other = world.user_ids()[5:7]
    lost = world.message_ids(other)[0]
    world.edit_user(user_id, name=MARKS[0])
    world.edit_message(user_id, world.message_ids(user_id)[0], body=MARKS[1])
    world.edit_message(other, lost, body=MARKS[2])
    sync(mirror, server)
    before = world.snapshot()
    world.remove_user(user_id)
    world.remove_message(other, lost)
    sync(mirror, server, mode="full")
    assert marked(mirror)[0] == [user_id]
    assert {mark for mark in MARKS if traces(mirror.folder, mark)} == {*MARKS}
    return user_id, before


def test_rows_gone_for_longer_are_removed_with_all_their_bytes(mirror, server, gone):
    query = "SELECT * EXCLUDE (last_seen_at) FROM {} WHERE deleted_at IS NULL ORDER BY ALL"
    kept = [rows(mirror, query.format(table)) for table in ("users", "messages")]
    keeping_none = Mirror(mirror.folder, retention=timedelta(0))
    server.fault("users: status(401)")
    with pytest.raises(AuthenticationError):
        sync(keeping_none, server)
    # Nothing is removed before the service answers.
    assert marked(mirror)[0] == [gone[0]]
    server.clear_faults()
    report = sync(keeping_none, server, publish=False)
    assert report.published
    assert traces(mirror.folder, *MARKS) == []
    assert marked(mirror) == ([], [])
    assert kept == [rows(mirror, query.format(table)) for table in ("users", "messages")]
    assert rows(mirror, "SELECT * FROM forgotten") == []
    assert rows(mirror, f"SELECT * FROM lists WHERE user_id = {gone[0]}") == []


def test_a_removed_user_who_comes_back_is_added_again(mirror, server, gone):
    user_id, before = gone
    sync(Mirror(mirror.folder, retention=0), server)
    server.world.restore(before)
    sync(Mirror(mirror.folder, retention=0), server)
    assert missed(mirror, server.world) == []
    assert rows(mirror, f"SELECT name FROM users WHERE id = {user_id}") == [(MARKS[0],)]


@pytest.mark.parametrize("retention", [None, timedelta(days=90)])
def test_rows_gone_for_less_long_stay_and_the_database_is_not_written_anew(
    mirror, server, gone, retention
):
    before = (mirror.folder / "mirror.duckdb").stat().st_ino
    sync(Mirror(mirror.folder, retention=retention), server)
    assert (mirror.folder / "mirror.duckdb").stat().st_ino == before
    assert marked(mirror)[0] == [gone[0]]


def test_rejected_records_gone_for_longer_are_removed_with_all_their_bytes(mirror, scripted):
    service = Rows(
        [user(1), user("2", name=MARKS[0])], {1: [message(5), message("x6", body=MARKS[1])]}
    )
    server = scripted(service)
    keeping_none = Mirror(mirror.folder, retention=0)
    held = "SELECT resource FROM rejects ORDER BY 1"
    for _ in range(3):
        sync(keeping_none, server)
        assert rows(mirror, held) == [("messages",), ("users",)]
    service.users, service.messages = [user(1)], {1: [message(5)]}
    sync(mirror, server)
    sync(Mirror(mirror.folder, retention=3600), server)
    assert rows(mirror, held) == [("messages",), ("users",)]
    assert {mark for mark in MARKS if traces(mirror.folder, mark)} == {*MARKS[:2]}
    sync(keeping_none, server)
    assert rows(mirror, held) == []
    assert traces(mirror.folder, *MARKS) == []


@pytest.mark.parametrize("read", [{"certificate": "uncertified"}, {"kind": "end"}])
def test_rejected_records_stay_until_a_complete_read_does_not_find_them(mirror, read):
    rejects = [{"resource": "users"}, {"resource": "messages", "user_id": 1}]
    for found in (rejects, [], []):
        unsure = batch([{"id": 1}], rejects=found, swept="uncertified", lists=[ended(1, **read)])
        BatchSource(unsure).sync_into(mirror.folder, retention=0)
    assert rows(mirror, "SELECT count(*) FROM rejects") == [(2,)]


HOUR = timedelta(hours=1)
YEARS = timedelta(days=3653)


class Clock:
    """What `datetime.now` says, some time from now; and so a service's Date header."""

    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead

    def now(self, zone: Any) -> datetime:
        return datetime.now(zone) + self.ahead

    def headers(self, request: object) -> dict[str, str]:
        return {"date": format_datetime(self.now(UTC), usegmt=True)}


@pytest.mark.parametrize(
    ("local", "service_clock", "retention", "stays", "problem"),
    [
        (YEARS, 0 * HOUR, 90 * 24 * HOUR, [2], "differs from the service's"),
        (0 * HOUR, YEARS, 0 * HOUR, [2], "differs from the service's"),
        (-YEARS, None, 0 * HOUR, [2], "is before the mirror's last run"),
        (YEARS, YEARS, 90 * 24 * HOUR, [], None),
        (20 * HOUR, 2 * HOUR, 10 * HOUR, [2], None),
        (2 * HOUR, 20 * HOUR, 1 * HOUR, [], None),
    ],
)
def test_mirror_retention_does_not_trust_one_clock(
    mirror, scripted, monkeypatch, local, service_clock, retention, stays, problem
):
    service = Rows([user(1), user(2)], {1: [message(5)], 2: [message(6)]})
    server = scripted(service)
    sync(mirror, server)
    service.users = [user(1)]
    sync(mirror, server, mode="full")
    if service_clock is not None:
        service.head = Clock(service_clock).headers
    monkeypatch.setattr(purge, "datetime", Clock(local))
    report = sync(Mirror(mirror.folder, retention=retention), server)
    assert marked(mirror)[0] == stays
    if problem is None:
        assert report.retention_problem is None
    else:
        assert problem in report.retention_problem
