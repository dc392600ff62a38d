"""The mock's public signatures, used as a user would, for mypy --strict and basedpyright.

Nothing here runs. A line that stops type-checking is a change that breaks users.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import assert_type

from backread import AsyncClient, Client
from backread.pytest_plugin import (
    backread_async_client,
    backread_client,
    backread_mock,
    backread_server,
)
from backread.testing import (
    Calls,
    Clock,
    Dialect,
    Fault,
    JournalEntry,
    Lane,
    LostRow,
    MockServer,
    Rate,
    UnexpectedRequestError,
    World,
)
from backread.typed_dicts import MessageDict, UserDict


def the_mock() -> None:
    world = World(seed=7, users=200, messages_per_user=(0, 120), until=datetime.now(UTC))
    World(user=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    MockServer(prot=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type((world.user(42), world.message(42, 7)), tuple[UserDict, MessageDict])
    world.edit_user(42, name=None)
    world.edit_message(42, 7, body="edited")
    world.restore(world.snapshot())
    world.to_jsonl(Path("world.jsonl"))
    assert_type(world.to_jsonl(), str)
    assert_type(World.from_jsonl("world.jsonl"), World)
    with MockServer(world, host="127.0.0.1", port=0, secret=None, vendor=None) as server:
        assert_type(server, MockServer)
        assert_type(server.client(timeout=1, max_retries=0, user_agent="tests"), Client)
        assert_type(server.async_client(deadline=timedelta(seconds=5)), AsyncClient)
        assert_type((server.counts(), server.statuses()), tuple[dict[str, int], dict[int, int]])
    MockServer(dialect="hostile", faults="any: reset()", rate="5/s", journal=100).close()
    MockServer(dialect=Dialect.lenient(), faults=["any: reset()"], rate=Rate(5))
    with server.lane(world, name="one", dialect=Dialect(), rate=Rate(5), seed=3) as one:
        assert_type(one, Lane)
    assert [backread_server, backread_mock, backread_client, backread_async_client]


def a_lane(lane: Lane) -> None:
    lane.dialect = "hostile order=newest"
    assert_type((lane.dialect, lane.clock), tuple[Dialect, Clock])
    lane.rate = "10/s"
    lane.rate = None
    lane.faults = ["users: reset()"]
    lane.faults = None
    lane.fault(["users: status(503) x2", "user: reset()"])
    page = lane.on("messages", user=42, offset=99)
    page.fail(Fault.status(429), times=2, each=True).fail("reset()", attempt=3, every=2, p=0.5)
    assert_type(page.calls, Calls)
    drift = lane.between_pages("users", after=1)
    drift.delete(first=1).delete(last=1).delete(ids=(each for each in [42])).add(3)
    lane.between_pages("messages", after=2, user=42).edit(first=1, body=None).add()
    audit = lane.audit(user.id for user in lane.client(timeout=3).users.list())
    assert_type((audit.missing, audit.unexpected), tuple[tuple[LostRow, ...], tuple[int, ...]])
    assert_type(audit.missing[0].request, JournalEntry | None)
    assert_type(
        (lane.calls("users", offset=3)[0], lane.calls()[1:]),
        tuple[JournalEntry, list[JournalEntry]],
    )
    lane.clock.advance(3)
    lane.clock.advance(timedelta(seconds=3))
    raise UnexpectedRequestError(lane.unexpected, lane.vendor)


def faults_dialects_and_rates() -> None:
    faults = [
        Fault.status(429, retry_after=1, body="slower"),
        Fault.reset(after_bytes=10),
        Fault.truncate(100, length="honest"),
        Fault.garbage("<html>"),
    ]
    assert_type((faults, faults[0].text), tuple[list[Fault], str])
    dialect = Dialect("hostile", strict=False, order="newest", max_limit=10, short_pages=True)
    assert_type(dialect.with_(total="null", ids="text"), Dialect)
    assert_type((Rate.read("10/s"), Rate(10, says="headers").burst), tuple[Rate, int])
