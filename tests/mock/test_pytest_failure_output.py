"""What pytest shows of a test of a user's that fails, and which tests fail at their end."""

import re
import socket
from urllib.parse import urlsplit

import pytest

from backread.testing import MockServer, World
from helpers.pytest_outcome import outcome

pytest_plugins = ["pytester"]

PAGER = """
from backread.testing import MockServer, World

def read_by_offset(client):
    ids = []
    while page := client.users.page(offset=len(ids), limit=99):
        ids += [user.id for user in page]
    return ids
"""


def test_a_test_that_fails_shows_its_audit_and_the_requests_that_came(pytester):
    done = outcome(
        pytester,
        PAGER
        + """
def test_all_users(backread_mock, backread_client):
    backread_mock.between_pages("users", after=1).delete(first=3)
    audit = backread_mock.audit(read_by_offset(backread_client))
    assert audit.ok

def test_a_server_of_ones_own():
    with MockServer(World(users=100)) as server:
        assert server.audit([]).ok

def test_the_next_test_is_told_nothing_of_it():
    assert 1 == 2

@pytest.mark.backread(faults="users offset=0: status(503) x1", clock="virtual")
def test_lane(backread_client):
    list(backread_client.users.list())
    assert 1 == 2

def test_many(backread_mock, backread_client):
    for _ in range(60):
        backread_client.users.get(42)
    assert 1 == 2

def test_shared_server(backread_client):
    backread_client.users.get(42)
    assert 1 == 2

def test_none(backread_mock):
    assert 1 == 2
""",
        failed=7,
    )
    done.stdout.fnmatch_lines(
        [
            ">       assert audit.ok",
            "*where False = <Audit of 197 rows: 3 missing>.ok",
            "*- backread audit -*",
            "user 835 is missing: request 2 (GET /external/users?offset=99&limit=99) lost it: *",
            "user 846 is missing: *",
            "user 854 is missing: *",
            "*_ test_lane _*",
            "*- backread requests -*",
            "request 1: GET /external/users?offset=0&limit=99 -> 503 (users offset=0: *",
            "request 2: GET /external/users?offset=0&limit=99 -> 200",
            "*_ test_many _*",
            "*- backread requests -*",
            "request 25: GET /external/users/42 -> 200",
            "... 10 more ...",
            "request 36: GET /external/users/42 -> 200",
            "request 60: *",
            "*_ test_shared_server _*",
            "*- backread_server requests -*",
            "request *: GET /external/users/42 -> 200",
            "*_ test_none _*",
            "*- backread requests -*",
            "no request came",
        ]
    )
    text = done.stdout.str()
    assert text.count("is missing: this list was not requested") == 50
    assert text.count("... 50 more rows") == 1
    assert text.count("- backread audit -") == 2


def test_an_error_ends_at_the_callers_line(pytester):
    pytester.makepyfile("""
import asyncio
import pytest
from backread import Client

async def read(lane, user_id):
    async with lane.async_client() as client:
        return await client.messages.list(user_id)

@pytest.mark.parametrize("call", [
    lambda lane, client: client.users.get(999),
    lambda lane, client: client.messages.page(999, limit=100),
    lambda lane, client: list(client.messages.list(999)),
    lambda lane, client: client.messages.list(999).to_polars(),
    lambda lane, client: asyncio.run(read(lane, 999)),
    lambda lane, client: Client(timeout="soon"),
    lambda lane, client: Client(service="missing"),
])
def test_call(call, backread_mock, backread_client):
    call(backread_mock, backread_client)
""")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--tb=short")
    done.assert_outcomes(failed=7)
    places = [line for line in done.outlines if re.match(r"\S+\.py:\d+: in ", line)]
    assert sum("test_an_error_ends" in line for line in places) >= 14
    assert not [line for line in places if "backread" in line]


def test_a_check_raises_what_is_wrong(backread_mock, backread_client):
    held = [user.id for user in backread_client.users.list()]
    backread_mock.audit(held).check()
    with pytest.raises(AssertionError, match=f"^user {held[0]} is missing: "):
        backread_mock.audit(held[1:]).check()
    with pytest.raises(AssertionError, match=f"^user {held[0]} was read 2 times"):
        backread_mock.audit([*held, held[0]]).check()
    with pytest.raises(AssertionError, match=r"^user 1 was read but never existed$"):
        backread_mock.audit([*held, 1]).check()
    with pytest.raises(AssertionError, match=r"\n\.\.\. 150 more rows$"):
        backread_mock.audit([]).check()


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="pytest 9 was the first with subtests")
def test_each_failing_subtest_shows_the_requests_since_the_failure_before(pytester):
    done = outcome(
        pytester,
        """
def test_fixture(backread_mock, backread_client, subtests):
    # A fault that a failed subtest prevented is not reported as another error.
    backread_mock.fault("message: status(503)")
    users = backread_mock.world.user_ids()
    for number in range(3):
        with subtests.test(number=number):
            backread_client.users.get(users[number])
            assert number == 1 or backread_mock.audit([]).ok
    with subtests.test("without a request"):
        assert 1 == 2
""",
        failed=4,
    )
    done.stdout.fnmatch_lines(
        [
            "*_ test_fixture (number=0) _*",
            "*- backread audit -*",
            "*- backread requests -*",
            "request 1: *",
            "*_ test_fixture (number=2) _*",
            "*- backread audit -*",
            "*- backread requests -*",
            "request 2: *",
            "request 3: *",
            "*_ test_fixture [[]without a request[]] _*",
        ]
    )
    assert len(re.findall("^request ", done.stdout.str(), re.MULTILINE)) == 3


def test_what_was_set_and_never_happened_fails_the_test_unless_that_may_be(pytester):
    done = outcome(
        pytester,
        """
@pytest.mark.backread(faults="users offset=99: status(503) x1")
def test_an_offset_that_never_comes(backread_client):
    assert len(list(backread_client.users.list())) == 200

def test_a_page_that_is_not_read(backread_mock, backread_client):
    backread_mock.between_pages("messages", after=2, user=42).add(5).edit(first=1, body="Hi")
    backread_mock.between_pages("users", after=9).delete(ids=[42])
    backread_client.users.page()

@pytest.mark.backread(faults="users offset=0: status(503) x1", clock="virtual")
def test_it_happened(backread_mock, backread_client):
    backread_mock.between_pages("users", after=1).add(1)
    list(backread_client.users.list())

def test_it_is_left_to_chance(backread_mock, backread_client):
    backread_mock.on("users").fail("status(503)", p=0)
    backread_client.users.page()

def test_it_is_allowed(backread_mock):
    backread_mock.on("users").fail("status(503)")
    backread_mock.between_pages("users", after=1).add(1)
    backread_mock.allow_unfired()

def test_it_failed_before(backread_mock):
    backread_mock.on("users").fail("status(503)")
    assert 1 == 2

@pytest.mark.xfail
def test_it_was_known_to_fail(backread_mock):
    backread_mock.on("users").fail("status(503)")
    assert 1 == 2
""",
        passed=5,
        failed=1,
        xfailed=1,
        errors=2,
    )
    done.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_an_offset_that_never_comes*",
            "*UnfiredError: 1 fault or change that this test had set never happened: *",
            "*users offset=99: status(503) x1",
            "*allow_unfired()*",
            "*- backread requests -*",
            "request 2: GET /external/users?offset=96&limit=99 -> 200",
            "*ERROR at teardown of test_a_page_that_is_not_read*",
            "*UnfiredError: 3 faults or changes that this test had set never happened: *",
            '*between_pages("messages", after=2, user=42).add(5)',
            '*between_pages("messages", after=2, user=42).edit(first=1, body="Hi")',
            '*between_pages("users", after=9).delete(ids=[[]42[]])',
        ]
    )
    done.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_what_is_shown_of_requests_and_audits_steers_no_terminal():
    from backread.testing.audit import Audit, failed_audits
    from backread.testing.failed_test import audits_shown, requests_shown

    odd = "\x1b[2J\x9b\u202e"
    failed_audits.append(Audit((), (), (1,), 0, f"user{odd}"))
    try:
        shown = audits_shown()
    finally:
        failed_audits.pop()
    assert "1 was read but never existed" in shown
    with MockServer(World(seed=5, users=1)) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), 30) as connection:
            head = f"GET /external/users/\x9b2J{odd} HTTP/1.1\r\nhost: {address.netloc}\r\n\r\n"
            connection.sendall(head.encode())
            connection.recv(4096)
        shown += requests_shown(server)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown) is None
