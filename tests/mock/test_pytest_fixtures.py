"""The pytest fixtures of the wheel and their marker, as a user's test suite has them."""

import os
import subprocess
import sys

import pytest

from backread import BadRequestError, Client
from backread.testing import Dialect, Rate
from helpers.pytest_outcome import outcome

pytest_plugins = ["pytester"]

SECRET_BEFORE = os.environ.get("BACKREAD_API_SECRET")


def test_the_server_has_200_users_with_messages(backread_server):
    world = backread_server.world
    assert (world.seed, world.total_users, world.messages_per_user) == (7, 200, (0, 120))
    assert backread_server.url.startswith("http://127.0.0.1:")


def test_fixtures_need_no_setup(pytester):
    outcome(
        pytester,
        """
seen = []

def test_nothing_is_loaded_before_a_fixture_is_used():
    assert "backread._backread" not in sys.modules

def test_sync(backread_server, backread_client):
    seen.append((backread_server, backread_client))
    assert backread_client.users.page().total == backread_server.world.total_users

def test_async(backread_server, backread_async_client):
    async def main():
        return [user async for user in backread_async_client.users.list()]
    assert len(asyncio.run(main())) == backread_server.world.total_users

def test_the_server_is_the_same_and_the_client_was_closed(backread_server, backread_client):
    [(server, client)] = seen
    assert server is backread_server
    assert client is not backread_client
    with pytest.raises(Exception, match="closed"):
        client.users.get(42)
""",
        passed=4,
    )


# What pytest 6.2.5 has not, and pytest 7.4 with pluggy 1.0 neither: an error at the import of a
# plugin ends every run where it is installed.
OLDER_PYTEST = """
import pytest

def hookimpl(*, hookwrapper=False, optionalhook=False, tryfirst=False, trylast=False):
    return lambda function: function

pytest.hookimpl = hookimpl
del pytest.StashKey
import backread.pytest_plugin
"""


def test_an_older_pytest_can_load_the_plugin():
    subprocess.run([sys.executable, "-c", OLDER_PYTEST], check=True)


# --- a lane for each test, and the marker ---------------------------------------------------------


@pytest.mark.parametrize("time", ["first", "second"])
def test_what_one_test_does_the_next_does_not_see(backread_mock, time):
    assert backread_mock.world.total_users == 200
    assert backread_mock.faults == ()
    assert not backread_mock.clock.is_virtual
    assert backread_mock.counts()["users"] == 0
    backread_mock.world.remove_user(backread_mock.world.user_ids()[0])
    backread_mock.fault("users: status(400)")
    backread_mock.clock.virtual()
    with backread_mock.client() as client, pytest.raises(BadRequestError):
        client.users.page()


@pytest.mark.backread(
    world={"seed": 3, "users": 5, "messages_per_user": (1, 2)},
    dialect="hostile order=newest",
    faults=["users offset=0: status(503) x1", "any: latency(1)"],
    rate="5/s burst=7",
    clock="virtual",
)
def test_the_marker_says_what_the_lane_is_like(backread_mock):
    assert backread_mock.world.total_users == 5
    assert backread_mock.dialect == Dialect("hostile", order="newest")
    assert backread_mock.faults == ("users offset=0: status(503) x1", "any: latency(1)")
    backread_mock.allow_unfired()
    assert backread_mock.rate == Rate(5, burst=7)
    assert backread_mock.clock.is_virtual


def test_clients_are_of_the_lane_where_there_is_one(
    backread_client, backread_environment, backread_mock, backread_server
):
    before = backread_server.counts()["user"]
    with Client() as own:
        for client in (backread_client, own):
            client.users.get(backread_mock.world.user_ids()[0])
    assert backread_mock.counts()["user"] == 2
    assert backread_server.counts()["user"] == before


def test_the_environment_is_that_of_before_without_the_fixture():
    assert os.environ.get("BACKREAD_API_SECRET") == SECRET_BEFORE


def test_the_marker_brings_the_lane_and_its_checks(pytester):
    pytester.makeini("[pytest]\naddopts = --strict-markers")
    done = outcome(
        pytester,
        """
import http.client, unittest
from backread.testing import Lane

def send(path):
    connection = http.client.HTTPConnection(address)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()

def test_address(backread_server):
    global address
    address = backread_server.url.removeprefix("http://")

@pytest.mark.backread
def test_marked():
    send("/external/user")

@pytest.mark.backread
def test_fails_already():
    send("/external/user")
    assert 1 == 2

@pytest.mark.backread(unexpected="allow")
def test_allowed():
    send("/external/user")

def test_unmarked():
    send("/external/user")

@pytest.mark.parametrize("one", [1, pytest.param(2, marks=pytest.mark.backread)])
def test_of_two(one, request):
    send("/external/user")

@pytest.mark.backread(dialekt="hostile")
def test_validated(): ...

@pytest.mark.backread("hostile")
def test_place(backread_mock): ...

@pytest.mark.backread(clock="fast")
def test_word(backread_client): ...

@pytest.mark.backread(dialect="nice")
def test_dialect(backread_mock): ...

class TestCase(unittest.TestCase):
    @pytest.mark.backread
    def test_method(self):
        send("/external/user")
""",
        passed=7,
        failed=1,
        errors=8,
    )
    done.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_marked*",
            "*UnexpectedRequestError: 1 request was sent that the API does not allow",
            "*request 1: GET /external/user -> 404 (unknown_path)",
            "*sent: */external/user",
            "*nearest: */external/users",
            "*ERROR at teardown of test_fails_already*",
            "*ERROR at teardown of test_of_two?2?*",
            "*ERROR at setup of test_validated*",
            "*does not take dialekt; it takes world=, dialect=, faults=, rate=, clock=, unexp*",
            "*does not take 'hostile'; *",
            "*clock must be 'real' or 'virtual', not 'fast'*",
            '*there is no dialect "nice"; choose one of documented, lenient, hostile*',
            "*ERROR at teardown of TestCase.test_method*",
            "*FAILURES*",
            "*assert 1 == 2*",
        ]
    )
    # What was sent is the report, and not where the plugin noticed.
    done.stdout.no_fnmatch_line("*raise UnexpectedRequestError*")
