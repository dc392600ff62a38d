"""Lanes: services of their own behind the secrets of one server; their rate limits."""

import math
import pickle
from collections.abc import Iterator

import pytest

import backread
from backread.testing import (
    Dialect,
    Fault,
    Lane,
    MockServer,
    Rate,
    UnexpectedRequestError,
    World,
)


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=2, users=120, messages_per_user=(0, 9))) as running:
        yield running


@pytest.fixture
def one(server: MockServer) -> Iterator[Lane]:
    with server.lane() as lane:
        yield lane


@pytest.fixture
def other(server: MockServer) -> Iterator[Lane]:
    with server.lane() as lane:
        yield lane


def test_rows_of_one_lane_are_its_own(face, server, one, other):
    gone = one.world.user_ids()[0]
    one.world.remove_user(gone)
    one.world.add_users(5)
    assert len(face.collect(face.client(one).users.list())) == 124
    assert len(face.collect(face.client(other).users.list())) == 120
    assert face.call(face.client(server).users.get, gone).id == gone


def test_lane_dialect_and_faults_are_its_own(face, one, other):
    one.dialect = "hostile"
    one.rate = Rate(1000, burst=5)
    one.on("any").fail(Fault.status(404))
    one.clock.virtual()
    with pytest.raises(backread.NotFoundError):
        face.call(face.client(one).users.page)
    assert face.call(face.client(other).users.page).limit == 99
    assert one.statuses() == {404: 1}
    assert other.statuses() == {200: 1}
    assert (other.dialect, other.rate, other.faults) == (Dialect.documented(), None, ())
    assert not other.clock.is_virtual


def test_a_lane_has_the_world_that_is_given_or_a_copy_of_the_servers(face):
    world = World(seed=9, users=4)
    with MockServer(World(users=3)) as server, server.lane(world) as given:
        assert given.world is world
        world.add_users(3)
        assert len(face.collect(face.client(given).users.list())) == 7
        server.world.add_users(2)
        with server.lane() as copied:
            server.world.add_users(1)
            assert copied.world.total_users == 5


def test_the_server_is_a_lane_of_its_own(face):
    rules = ["users offset=0: status(503) x1", "user: latency(1)"]
    with MockServer(
        World(users=5), dialect="lenient", faults=rules, rate="1000/s burst=50", journal=5
    ) as server:
        assert isinstance(server, Lane)
        assert server.faults == tuple(rules)
        assert (server.dialect, server.rate) == (Dialect.lenient(), Rate(1000, burst=50))
        server.clock.virtual()
        assert len(face.collect(face.client(server).users.list())) == 5
        assert server.statuses() == {503: 1, 200: 1}


def test_a_closed_lane_has_no_secret_and_no_clients(each_face, server, by_hand):
    lane = server.lane()
    client = each_face.client(lane)
    asking = by_hand(lane)
    assert asking("/external/users").status == 200
    lane.close()
    lane.close()
    assert asking("/external/users").status == 401
    with pytest.raises(backread.BackreadError, match="closed"):
        each_face.call(client.users.page)


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"dialect": "nice"}, ValueError, "documented, lenient, hostile"),
        ({"dialect": 5}, TypeError, "a Dialect, or its text .*'hostile order=newest'.*, not 5"),
        ({"rate": "fast"}, ValueError, "10/s"),
        ({"rate": 5}, TypeError, r"rate: a Rate, its text such as '10/s burst=20', or None, not 5"),
        ({"faults": ["users: reset()", "usres: reset()"]}, ValueError, "expected a route"),
        ({"faults": 5}, TypeError, "faults: whole rules as text, .*, not 5"),
        ({"world": 5}, TypeError, "world: a World, or None for the usual one, not 5"),
    ],
)
def test_what_makes_no_sense_is_named(server, arguments, error, problem):
    for make in (server.lane, MockServer):
        with pytest.raises(error, match=problem):
            make(**arguments)


def test_lane_names_are_checked_and_shown(server):
    with server.lane(name="the_slow-1") as lane:
        assert lane.name == "the_slow-1"
        assert "the_slow-1" in repr(lane)
        assert lane.secret not in repr(lane)
        with pytest.raises(ValueError, match='a lane "the_slow-1" is open already'):
            server.lane(name="the_slow-1")
    with pytest.raises(ValueError, match="name: letters, digits, - and _"):
        server.lane(name="a name")


def test_what_comes_late_to_a_closed_lane_is_its_own(server, by_hand):
    lane = server.lane(dialect="lenient")
    asking = by_hand(lane)
    lane.close()
    before = server.calls(status=401).count
    assert asking("/external/users").status == 401
    assert server.calls(status=401).count == before
    assert [entry.unexpected for entry in lane.journal] == ["unauthorized"]
    said = str(UnexpectedRequestError(lane.unexpected, lane.vendor))
    assert "wanted: the header Authorization: Bearer SECRET, with the secret of a lane" in said


def test_rules_are_set_as_text_and_tell_how_often_they_fired(face, one):
    one.clock.virtual()
    one.faults = ["users offset=96: status(503) x1", "users offset=100: reset()"]
    one.fault("user: latency(5)")
    assert len(face.collect(face.client(one).users.list())) == 120
    assert one.fired == (1, 0, 0)
    one.faults = "users: garbage() x1"
    assert (one.faults, one.fired) == (("users: garbage() x1",), (0,))
    with pytest.raises(ValueError, match="nothing"):
        one.faults = ("users: status(500)", "users: nothing()")
    assert one.faults == ("users: garbage() x1",)


def test_address_and_secret_of_a_client_are_the_lanes(face, one):
    with pytest.raises(TypeError, match=r"^api_secret is the lane's own: leave it out"):
        face.client(one, api_secret="other")


def test_a_closed_server_closes_its_clients():
    with MockServer() as server:
        client = server.client()
        user_id = client.users.page(limit=1)[0].id
    with pytest.raises(backread.BackreadError, match="closed"):
        client.users.get(user_id)


# --- the rate limit of a lane ---------------------------------------------------------------------


def test_a_rate_reads_back_from_its_text():
    rate = Rate(10, burst=20, says="headers")
    assert str(rate) == "10/s burst=20 says=headers"
    assert Rate.read(str(rate)) == rate
    assert pickle.loads(pickle.dumps(rate)) == rate
    assert (Rate(0.5).burst, Rate(7.9).burst) == (1, 7)
    assert (Rate(3).per_second, Rate(3).says) == (3.0, "retry_after")
    assert eval(repr(rate)) == rate
    assert len({rate, Rate.read(str(rate)), Rate(10, burst=20, says="headers", status=503)}) == 2


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"per_second": math.nan}, "per_second"),
        ({"burst": 0}, "burst"),
        ({"says": "loudly"}, "says"),
        ({"status": 500}, "status must be 429 or 503"),
    ],
)
def test_a_rate_out_of_bounds_is_a_value_error(arguments, problem):
    with pytest.raises(ValueError, match=problem):
        Rate(**{"per_second": 1, **arguments})
    with pytest.raises(TypeError, match="text must be a str such as '10/s burst=20', not None"):
        Rate.read(None)  # type: ignore[arg-type]


def test_headers_come_with_every_answer(mock, by_hand):
    mock.rate = "2/s burst=2 says=headers"
    caller = by_hand(mock)
    answers = [caller("/external/users") for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 429]
    assert [each.headers["x-ratelimit-remaining"] for each in answers] == ["1", "0", "0"]
    assert {each.headers["x-ratelimit-limit"] for each in answers} == {"2"}
    assert "retry-after" not in answers[-1].headers
