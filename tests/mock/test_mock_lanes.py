"""Lanes: services of their own behind the secrets of one server."""

from collections.abc import Iterator

import pytest

import backread
from backread.testing import Dialect, Fault, Lane, MockServer, Rate, World


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


def test_a_lane_is_a_copy_of_the_servers_world_at_that_moment():
    with MockServer(World(users=3)) as server:
        server.world.add_users(2)
        with server.lane() as lane:
            server.world.add_users(1)
            assert lane.world.total_users == 5


def test_a_world_that_is_given_is_the_lanes(face, server):
    world = World(seed=9, users=4)
    with server.lane(world) as lane:
        assert lane.world is world
        world.add_users(3)
        assert len(face.collect(face.client(lane).users.list())) == 7


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
    ("arguments", "problem"),
    [
        ({"dialect": "nice"}, "documented, lenient, hostile"),
        ({"rate": "fast"}, "10/s"),
        ({"faults": "users: broken()"}, "unknown fault"),
        ({"faults": ["users: status(503)", "usres: status(503)"]}, "expected a route"),
    ],
)
def test_what_makes_no_sense_is_named(server, arguments, problem):
    with pytest.raises(ValueError, match=problem):
        server.lane(**arguments)
    with pytest.raises(ValueError, match=problem):
        MockServer(**arguments)


def test_lane_names_are_checked_and_shown(server):
    with server.lane(name="the_slow-1") as lane:
        assert lane.name == "the_slow-1"
        assert "the_slow-1" in repr(lane)
        assert lane.secret not in repr(lane)
        with pytest.raises(ValueError, match='a lane "the_slow-1" is open already'):
            server.lane(name="the_slow-1")
    with pytest.raises(ValueError, match="name: letters, digits, - and _"):
        server.lane(name="a name")


def test_the_inspector_is_at_an_address_with_its_token():
    with MockServer() as server:
        assert server.inspector_url == f"{server.url}/__mock/#{server.admin_token}"
        assert server.admin_token not in (server.secret, repr(server))


def test_what_comes_late_to_a_closed_lane_is_its_own(server, by_hand):
    lane = server.lane(dialect="lenient")
    asking = by_hand(lane)
    lane.close()
    before = server.calls(status=401).count
    assert asking("/external/users").status == 401
    assert server.calls(status=401).count == before
    assert [entry.unexpected for entry in lane.journal] == ["unauthorized"]


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


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"world": 5}, "world: a World, or None for the usual one, not 5"),
        ({"dialect": 5}, "dialect: a Dialect, or its text .*'hostile order=newest'.*, not 5"),
        ({"rate": 5}, r"rate: a Rate, its text such as '10/s burst=20', or None, not 5"),
        ({"faults": 5}, "faults: whole rules as text, .*, not 5"),
    ],
)
def test_what_has_the_wrong_type_is_named(server, arguments, problem):
    with pytest.raises(TypeError, match=problem):
        server.lane(**arguments)
    with pytest.raises(TypeError, match=problem):
        MockServer(**arguments)


@pytest.mark.parametrize("name", ["base_url", "api_secret", "vendor"])
def test_address_and_secret_of_a_client_are_the_lanes(face, one, name):
    with pytest.raises(TypeError, match=f"^{name} is the lane's own: leave it out"):
        face.client(one, **{name: "other"})


def test_a_closed_server_closes_its_clients():
    with MockServer() as server:
        client = server.client()
        user_id = client.users.page(limit=1)[0].id
    with pytest.raises(backread.BackreadError, match="closed"):
        client.users.get(user_id)
