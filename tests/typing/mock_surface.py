"""The mock's public signatures, used as a user would, for mypy --strict and basedpyright.

Nothing here runs. A line that stops type-checking is a change that breaks users.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import assert_type

from backread import AsyncClient, Client
from backread.profile import Difference
from backread.pytest_plugin import (
    backread_async_client,
    backread_client,
    backread_mock,
    backread_server,
)
from backread.testing import (
    Audit,
    Calls,
    Clock,
    Dialect,
    Fault,
    JournalEntry,
    Lane,
    LostRow,
    MockServer,
    Rate,
    RepeatedRow,
    UnexpectedRequestError,
    World,
    WorldSnapshot,
)
from backread.typed_dicts import MessageDict, UserDict


def the_mock() -> None:
    world = World(seed=7, users=200, messages_per_user=(0, 120))
    World(user=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    MockServer(prot=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type((world.messages_per_user, world.total_users), tuple[tuple[int, int], int])
    assert_type((world.user_ids(), world.message_ids(42)), tuple[list[int], list[int]])
    assert_type((world.user(42), world.message(42, 7)), tuple[UserDict, MessageDict])
    assert_type((world.add_users(3), world.add_messages(42, 3)), tuple[list[int], list[int]])
    world.edit_user(42, name=None)
    world.edit_message(42, 7, body="edited")
    world.remove_message(42, 7)
    world.remove_user(42)
    assert_type(World(until=datetime.now(UTC)).until, datetime | None)
    with MockServer(world, host="127.0.0.1", port=0, secret=None, vendor=None) as server:
        assert_type(server, MockServer)
        assert_type((server.url, server.port, server.secret), tuple[str, int, str])
        assert_type((server.vendor, server.world, server.client()), tuple[str, World, Client])
        assert_type(server.client(timeout=1, max_retries=0, user_agent="tests"), Client)
        assert_type(server.async_client(deadline=timedelta(seconds=5)), AsyncClient)
        assert_type((server.counts(), server.statuses()), tuple[dict[str, int], dict[int, int]])
    server.stop()
    MockServer(dialect="hostile", faults="any: reset()", rate="5/s", journal=100).close()
    MockServer(dialect=Dialect.lenient(), faults=["any: reset()"], rate=Rate(5))
    assert_type((server.admin_token, server.inspector_url, server.lane()), tuple[str, str, Lane])
    with server.lane(
        world, name="one", dialect="hostile", faults="user: reset()", rate="5/s", seed=3
    ) as one:
        assert_type(one, Lane)
    server.lane(dialect=Dialect(), faults=("user: reset()",), rate=Rate(5)).close()
    assert [backread_server, backread_mock, backread_client, backread_async_client]
    snapshot = world.snapshot()
    assert_type(snapshot, WorldSnapshot)
    world.restore(snapshot)
    assert_type((world.copy(), world.to_jsonl()), tuple[World, str])
    world.to_jsonl(Path("world.jsonl"))
    assert_type(World.from_jsonl("world.jsonl"), World)


def a_lane(lane: Lane) -> None:
    assert_type((lane.name, lane.seed, lane.world, lane.clock), tuple[str, int, World, Clock])
    lane.dialect = "hostile order=newest"
    assert_type(lane.dialect, Dialect)
    lane.rate = "10/s"
    lane.rate = None
    lane.faults = ["users: reset()"]
    lane.faults = None
    assert_type((lane.fired, lane.waiting), tuple[tuple[int, ...], int])
    lane.fault(["users: status(503) x2", "user: reset()"])
    lane.clear_faults()
    lane.allow_unfired()
    page = lane.on("messages", user=42, offset=99)
    page.fail(Fault.status(429), times=2, each=True).fail("reset()", attempt=3, every=2, p=0.5)
    assert_type(page.calls, Calls)
    assert_type(lane.on("message", user=42, message=7).calls.count, int)
    drift = lane.between_pages("users", after=1)
    drift.delete(first=1).delete(last=1).delete(ids=(each for each in [42])).add(3)
    lane.between_pages("messages", after=2, user=42).edit(first=1, body=None).add()
    audit = lane.audit(user.id for user in lane.client(timeout=3).users.list())
    assert_type(audit, Audit)
    audit.check()
    assert_type(lane.audit([7], messages_of=42).ok, bool)
    assert_type((audit.missing, audit.unexpected), tuple[tuple[LostRow, ...], tuple[int, ...]])
    assert_type(audit.missing[0].request, JournalEntry | None)
    assert_type(audit.repeated, tuple[RepeatedRow, ...])
    assert_type(lane.calls("users", offset=3, status=200)[0], JournalEntry)
    assert_type(lane.calls()[1:], list[JournalEntry])
    assert_type((lane.unexpected, lane.counts()), tuple[tuple[JournalEntry, ...], dict[str, int]])
    assert_type(lane.journal[0].user, int | None)
    assert_type((lane.statuses(), lane.client()), tuple[dict[int, int], Client])
    assert_type(lane.async_client(max_retries=0), AsyncClient)
    lane.forget()
    lane.close()
    raise UnexpectedRequestError(lane.unexpected, lane.vendor)


def a_clock(clock: Clock) -> None:
    clock.virtual()
    clock.virtual(datetime(2026, 1, 1, tzinfo=UTC))
    clock.advance(3)
    clock.advance(timedelta(seconds=3))
    assert_type((clock.is_virtual, clock.now, clock.slept), tuple[bool, datetime, list[float]])
    clock.real()


def faults_dialects_and_rates() -> None:
    faults = [
        Fault("status(503)"),
        Fault.status(429, retry_after=1, body="slower"),
        Fault.latency_lognormal(200, 0.5),
        Fault.reset(after_bytes=10),
        Fault.truncate(100, length="honest"),
        Fault.drip(bytes=10, ms=50),
        Fault.garbage("<html>"),
    ]
    assert_type((faults, faults[0].text), tuple[list[Fault], str])
    dialect = Dialect("hostile", strict=False, order="newest", max_limit=10, short_pages=True)
    assert_type(dialect.with_(total="null", ids="text"), Dialect)
    assert_type((dialect.strict, dialect.max_limit, dialect.conforms), tuple[bool, int, bool])
    assert_type((Rate.read("10/s"), Rate(10, says="headers").burst), tuple[Rate, int])


def the_service(client: Client) -> None:
    profile = client.probe()
    found = profile.differences(profile)
    assert_type(found, list[Difference])
    assert_type(found[0].path, str)
    assert_type(found[0].note, str | None)
