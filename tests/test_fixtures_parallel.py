"""200 tests with lanes, faults and changing worlds, side by side and in any order."""

import pytest

pytest_plugins = ["pytester"]

SUITE = """
import asyncio, contextlib, hashlib, http.client, os
from pathlib import Path
import pytest
from backread.testing import Fault

@pytest.mark.parametrize("number", range(40))
def test_changes_its_world(backread_mock, backread_client, number):
    world = backread_mock.world
    assert world.total_users == 200
    for user_id in world.user_ids()[:number]:
        world.remove_user(user_id)
    world.add_users(2)
    assert len(backread_client.users.list().to_list()) == 202 - number

@pytest.mark.backread(clock="virtual")
@pytest.mark.parametrize("number", range(40))
def test_is_told_to_wait(backread_mock, number):
    m = backread_mock
    m.on("users", offset=0).fail(Fault.status(429, retry_after=30 + number), times=2)
    assert len(m.client().users.list().to_list()) == 200
    assert m.clock.slept == [30 + number, 30 + number]

@pytest.mark.backread(dialect="hostile order=id", faults="any p=0.2: status(503)", clock="virtual")
@pytest.mark.parametrize("number", range(40))
def test_reads_a_hostile_service(backread_mock, backread_async_client, number):
    async def main():
        return [user.id async for user in backread_async_client.users.list()]
    answers = hashlib.sha256()
    for target in [f"/external/users?offset={number}", f"/external/users/{number}/messages"] * 3:
        answers.update(raw(backread_mock, target))
    Path(os.environ["ANSWERS"], str(number)).write_text(answers.hexdigest())
    audit = backread_mock.audit(asyncio.run(main()))
    assert audit.ok, audit

def raw(lane, target):
    connection = http.client.HTTPConnection(lane.url.removeprefix("http://"))
    accept = f"application/vnd.{lane.vendor}.v1+json"
    headers = {"Authorization": f"Bearer {lane.secret}", "Accept": accept}
    with contextlib.closing(connection):
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return repr([answer.status, answer.getheaders(), answer.read()]).encode()

@pytest.mark.parametrize("number", range(40))
def test_loses_rows_of_a_world_that_moves(backread_mock, number):
    m = backread_mock
    m.between_pages("users", after=1).delete(first=1 + number % 5).add(1 + number % 3)
    with m.client() as client:
        held = []
        while page := client.users.page(len(held), 50).items:
            held += [user.id for user in page]
    assert len(m.audit(held).missing) == 1 + number % 5

@pytest.mark.backread(world={"users": 30, "messages_per_user": (0, 9)}, rate="50/s burst=3")
@pytest.mark.parametrize("number", range(40))
def test_reads_at_a_rate(backread_mock, backread_client, number):
    backread_mock.clock.virtual()
    users = backread_client.users.list().to_list()
    messages = backread_client.messages.list(users[number % 30].id).to_list()
    assert len(messages) == len(backread_mock.world.message_ids(users[number % 30].id))
"""

CONFTEST = """
import os, random

def pytest_collection_modifyitems(items):
    order = os.environ["ORDER"]
    if order == "reversed":
        items.reverse()
    if order.startswith("shuffled"):
        random.Random(order).shuffle(items)
"""


@pytest.mark.slow
def test_the_outcome_is_the_same_in_any_order(pytester, monkeypatch):
    pytest.importorskip("xdist")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(SUITE)
    outcomes = []
    for order in ("written", "reversed", "shuffled"):
        answers = pytester.mkdir(order)
        monkeypatch.setenv("ORDER", order)
        monkeypatch.setenv("ANSWERS", str(answers))
        done = pytester.runpytest_subprocess("-n4", "-q", "-p", "no:cacheprovider", "-W", "error")
        done.assert_outcomes(passed=200)
        outcomes.append({each.name: each.read_text() for each in answers.iterdir()})
    assert len(outcomes[0]) == 40
    assert all(outcome == outcomes[0] for outcome in outcomes)
