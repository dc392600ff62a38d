"""The fixture of one lane for each test, its marker, and what its end finds."""

import pytest

from backread import BadRequestError
from backread.testing import (
    Dialect,
    Lane,
    Rate,
    World,
)
from helpers.pytest_outcome import outcome

pytest_plugins = ["pytester"]


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


@pytest.mark.backread(dialect="lenient", clock="virtual", faults="user: status(500)")
class TestNearestMarker:
    @pytest.mark.backread(dialect=Dialect.hostile(), faults=())
    def test_marker_on_the_method_overrides_the_class(self, backread_mock: Lane) -> None:
        assert backread_mock.dialect == Dialect.hostile()
        assert backread_mock.clock.is_virtual
        assert backread_mock.faults == ()

    def test_marker_on_the_class_is_enough(self, backread_mock: Lane) -> None:
        assert backread_mock.dialect == Dialect.lenient()
        assert backread_mock.faults == ("user: status(500)",)
        backread_mock.allow_unfired()


SHARED = World(seed=4, users=9, messages_per_user=(0, 3))


@pytest.mark.parametrize("time", ["first", "second"])
@pytest.mark.backread(world=SHARED)
def test_a_world_of_the_marker_is_copied_for_each_test(backread_mock, time):
    assert backread_mock.world.total_users == 9
    backread_mock.world.add_users(2)
    assert SHARED.total_users == 9


def test_clients_are_of_the_lane_where_there_is_one(
    backread_client, backread_mock, backread_server
):
    before = backread_server.counts()["user"]
    backread_client.users.get(backread_mock.world.user_ids()[0])
    assert backread_mock.counts()["user"] == 1
    assert backread_server.counts()["user"] == before


def test_a_wrong_argument_is_named_with_the_right_ones(pytester):
    done = outcome(
        pytester,
        """
@pytest.mark.backread(dialekt="hostile")
def test_key(backread_mock): ...

@pytest.mark.backread("hostile")
def test_place(backread_mock): ...

@pytest.mark.backread(clock="fast")
def test_word(backread_client): ...

@pytest.mark.backread(dialect="nice")
def test_dialect(backread_mock): ...
""",
        errors=4,
    )
    done.stdout.fnmatch_lines(
        [
            "*does not take dialekt; it takes world=, dialect=, faults=, rate=, clock=, unexp*",
            "*does not take 'hostile'; *",
            "*clock must be 'real' or 'virtual', not 'fast'*",
            '*there is no dialect "nice"; choose one of documented, lenient, hostile*',
        ]
    )


def test_the_marker_brings_the_lane_and_its_checks(pytester):
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

def test_unmarked():
    send("/external/user")

@pytest.mark.parametrize("one", [1, pytest.param(2, marks=pytest.mark.backread)])
def test_of_two(one, request):
    send("/external/user")

@pytest.mark.backread(dialekt="hostile")
def test_validated(): ...

class TestCase(unittest.TestCase):
    @pytest.mark.backread
    def test_method(self):
        send("/external/user")
""",
        passed=6,
        errors=4,
    )
    done.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_marked*",
            "*ERROR at teardown of test_of_two?2?*",
            "*ERROR at setup of test_validated*",
            "*does not take dialekt*",
            "*ERROR at teardown of TestCase.test_method*",
        ]
    )


def test_the_marker_is_known_to_strict_suites(pytester):
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.backread(dialect="hostile")
        def test_it(backread_client):
            assert backread_client.users.page().items
        """
    )
    pytester.runpytest_subprocess("--strict-markers", "-W", "error").assert_outcomes(passed=1)
    shown = pytester.runpytest_subprocess("--markers")
    shown.stdout.fnmatch_lines(["@pytest.mark.backread(world=..., dialect=*"])


def test_requests_that_make_no_sense_fail_the_test_at_its_end(pytester):
    done = outcome(
        pytester,
        """
import http.client

def send(lane, path, secret=None, method="GET"):
    connection = http.client.HTTPConnection(lane.url.removeprefix("http://"))
    accept = f"application/vnd.{lane.vendor}.v1+json"
    headers = {"Authorization": f"Bearer {secret or lane.secret}", "Accept": accept}
    connection.request(method, path, headers=headers)
    connection.getresponse().read()
    connection.close()

def test_passes_but_for_that(backread_mock):
    send(backread_mock, "/external/users?limt=5")

def test_fails_already(backread_mock):
    send(backread_mock, "/external/user/42")
    assert 1 == 2

def test_carries_no_secret(backread_mock):
    send(backread_mock, "/external/users", secret="mistaken")

@pytest.mark.backread(unexpected="allow")
def test_is_allowed_to(backread_mock):
    send(backread_mock, "/external/users?limit=100")
    send(backread_mock, "/external/users", secret="mistaken")
    assert len(backread_mock.unexpected) == 1

def test_is_not_blamed_for_others(backread_mock):
    send(backread_mock, "/external/users?limit=5")
""",
        passed=4,
        failed=1,
        errors=3,
    )
    done.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_passes_but_for_that*",
            "*UnexpectedRequestError: 1 request was sent that the API does not allow",
            "*request 1: GET /external/users?limt=5 -> 422 (unknown_argument)",
            "*sent: *?limt=5",
            "*nearest: *?limit=5",
            "*ERROR at teardown of test_fails_already*",
            "*request 1: GET /external/user/42 -> 404 (unknown_path)",
            "*nearest: */external/users/42",
            "*ERROR at teardown of test_carries_no_secret*",
            "*-> 401 (unauthorized)",
            "*wanted: the header Authorization: Bearer *",
            "*FAILURES*",
            "*assert 1 == 2*",
        ]
    )
    # What was sent is the report, and not where the plugin noticed.
    done.stdout.no_fnmatch_line("*pytest_plugin.py*")
    done.stdout.no_fnmatch_line("*raise UnexpectedRequestError*")
