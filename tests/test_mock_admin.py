"""The mock's admin interface below ``/__mock/``: each route, each wrong input, and who may ask."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from by_hand import Answer, Caller
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backread import Client
from backread.errors import AuthenticationError
from backread.testing import MockServer, World

LANE_PATHS = [
    "",
    "/journal",
    "/dialect",
    "/rate",
    "/faults",
    "/faults/1",
    "/world",
    "/world/users/42",
    "/world/users/42/messages",
    "/drifts",
    "/clock",
    "/audit",
]
METHODS = ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"]


class Admin:
    """Asks the admin interface, over one connection that is kept alive."""

    def __init__(self, server: MockServer) -> None:
        self.token = server.admin_token
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)

    def send(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> Answer:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        self.connection.request(method, f"/__mock/{path}", sent, headers)
        return Answer(self.connection.getresponse())

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        answer = self.send(method, path, body)
        assert answer.status == 200, answer.body
        return answer.json

    def problem(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        answer = self.send(method, path, body)
        error = answer.json["error"]
        assert error["status"] == answer.status
        return answer.status, error["message"]


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=120, messages_per_user=(0, 12))) as server:
        yield server


@pytest.fixture
def admin(server: MockServer) -> Admin:
    return Admin(server)


def ids(client: Client) -> list[int]:
    return [user.id for user in client.users.list()]


# --- who may ask -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["state", "lanes", "lanes/main/journal", "nothing/here", "x%FF"])
def test_without_the_admin_token_there_is_nothing_to_see(server: MockServer, path: str) -> None:
    caller = Caller(server)
    for sent in (None, f"Bearer {server.secret}", "Bearer ", server.admin_token):
        answer = caller(f"/__mock/{path}", Authorization=sent)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "admin_token" in answer.json["error"]["message"].lower()


def test_the_admin_token_is_no_secret_of_a_lane(server: MockServer) -> None:
    assert Caller(server)("/external/users", Authorization=f"Bearer {server.admin_token}").status == 401
    assert len(server.admin_token) == 32
    with MockServer() as other:
        assert other.admin_token != server.admin_token
    assert server.admin_token not in repr(server)


def test_a_server_is_asked_by_its_address_only(server: MockServer) -> None:
    caller = Caller(server)
    caller.headers["Authorization"] = f"Bearer {server.admin_token}"
    for host in ("127.0.0.1", f"localhost:{server.port}", "[::1]:80"):
        assert caller("/__mock/state", Host=host).status == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"):
        for path in ("/__mock/", "/__mock/state"):
            answer = caller(path, Host=host)
            assert answer.status == 403
            assert "localhost" in answer.json["error"]["message"]


def test_no_page_of_another_site_may_read_or_frame_this(server: MockServer, admin: Admin) -> None:
    for answer in (admin.send("GET", "state"), admin.send("GET", ""), admin.send("OPTIONS", "state")):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy


def test_admin_requests_are_neither_counted_nor_noted(server: MockServer, admin: Admin) -> None:
    admin("GET", "state")
    admin.send("GET", "state", token="0" * 32)
    admin.send("GET", "")
    assert sum(server.counts().values()) == 0
    assert admin("GET", "lanes/main/journal")["entries"] == []


# --- the page ----------------------------------------------------------------------------------


def test_the_page_and_its_files_need_no_token(server: MockServer) -> None:
    caller = Caller(server)
    caller.headers = {}
    page = caller("/__mock/")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name, kind in (("js", "text/javascript"), ("css", "text/css"), ("svg", "image/svg+xml")):
        answer = caller(f"/__mock/inspector.{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert f'"inspector.{name}"'.encode() in page.body
        assert server.admin_token.encode() not in answer.body
    assert server.secret.encode() not in page.body
    moved = caller("/__mock")
    assert (moved.status, moved.headers["location"]) == (308, "/__mock/")
    assert caller("/__mock/", "POST").headers["allow"] == "GET"


# --- what there is to see ----------------------------------------------------------------------


def test_the_state_shows_the_server_and_its_lanes(server: MockServer, admin: Admin) -> None:
    with server.client() as client:
        ids(client)
    state = admin("GET", "state")
    assert state["server"]["url"] == server.url
    assert state["server"]["vendor"] == server.vendor
    (lane,) = state["lanes"]
    assert (lane["name"], lane["secret"], lane["main"]) == ("main", server.secret, True)
    assert lane["counts"]["users"] == 2
    assert lane["statuses"] == {"200": 2}
    assert lane["dialect"]["text"] == "documented"
    assert lane["dialect"]["conforms"] is True
    assert lane["world"]["total_users"] == 120
    assert lane["clock"]["virtual"] is False
    assert lane == admin("GET", "lanes/main") == admin("GET", "lanes")["lanes"][0]
    assert state["dialects"]["bundles"] == ["documented", "lenient", "hostile"]
    assert set(state["dialects"]["switches"]) == set(lane["dialect"]["switches"])


def test_every_choice_of_a_dialect_can_be_chosen(admin: Admin) -> None:
    for name, choice in admin("GET", "state")["dialects"]["switches"].items():
        values = choice if isinstance(choice, list) else [choice["least"], choice["most"]]
        for value in values:
            said = admin("PUT", "lanes/main/dialect", {"dialect": f"hostile {name}={value}"})
            assert said["switches"][name] == str(value)


def test_the_journal_goes_on_where_it_was_read_to(server: MockServer, admin: Admin) -> None:
    caller = Caller(server)
    for offset in range(5):
        caller(f"/external/users?offset={offset}&limit=1")
    first = admin("GET", "lanes/main/journal?limit=3")
    assert [entry["number"] for entry in first["entries"]] == [1, 2, 3]
    assert first["forgotten"] is False
    rest = admin("GET", "lanes/main/journal?after=3")["entries"]
    assert [entry["offset"] for entry in rest] == [3, 4]
    assert rest[0]["path"] == "/external/users?offset=3&limit=1"
    assert (rest[0]["method"], rest[0]["route"], rest[0]["status"]) == ("GET", "users", 200)
    assert (rest[0]["rows"], rest[0]["attempt"]) == (1, 1)
    caller("/external/user")
    (odd,) = admin("GET", "lanes/main/journal?after=5")["entries"]
    assert odd["unexpected"] == "unknown_path"
    admin("DELETE", "lanes/main/journal")
    assert admin("GET", "lanes/main/journal")["entries"] == []
    assert sum(server.counts().values()) == 0


def test_a_user_is_shown_as_the_world_has_it(server: MockServer, admin: Admin) -> None:
    admin("PUT", "lanes/main/dialect", {"dialect": "hostile"})
    world = server.world
    shown = admin("GET", "lanes/main/world/users/42")
    assert shown["user"] == world.user(42)
    assert shown["total_messages"] == len(world.message_ids(42))
    world.add_messages(42, 5)
    page = admin("GET", "lanes/main/world/users/42/messages?offset=2&limit=3")
    assert [message["id"] for message in page["messages"]] == world.message_ids(42)[2:5]
    assert page["messages"][0] == world.message(42, page["messages"][0]["id"])
    past = admin("GET", f"lanes/main/world/users/42/messages?offset={2**64 - 1}")
    assert past["messages"] == []


# --- what there is to switch -------------------------------------------------------------------


def test_a_fault_is_set_listed_and_taken_away(server: MockServer, admin: Admin) -> None:
    rule = "users offset=0: status(404)"
    (fault,) = admin("POST", "lanes/main/faults", {"faults": [rule]})["faults"]
    assert (fault["rule"], fault["fired"]) == ("users offset=0 : status(404)", 0) or fault["rule"] == rule
    caller = Caller(server)
    assert caller("/external/users").status == 404
    assert admin("GET", "lanes/main/faults")["faults"][0]["fired"] == 1
    admin("POST", "lanes/main/faults", {"faults": ["any: latency(1); user: garbage()"]})
    assert len(admin("GET", "lanes/main/faults")["faults"]) == 3
    admin("DELETE", f"lanes/main/faults/{fault['id']}")
    assert caller("/external/users").status == 200
    assert len(admin("GET", "lanes/main/faults")["faults"]) == 2
    (only,) = admin("PUT", "lanes/main/faults", {"faults": ["users: status(503)"]})["faults"]
    assert caller("/external/users").status == 503
    assert only["id"] != fault["id"]
    assert admin("DELETE", "lanes/main/faults")["faults"] == []
    assert caller("/external/users").status == 200


def test_nothing_is_set_where_one_rule_is_wrong(admin: Admin) -> None:
    admin("PUT", "lanes/main/faults", {"faults": ["any: latency(1)"]})
    status, message = admin.problem(
        "PUT", "lanes/main/faults", {"faults": ["users: garbage()", "users offset=x: garbage()"]}
    )
    assert status == 400
    assert "offset" in message
    assert len(admin("GET", "lanes/main/faults")["faults"]) == 1


def test_another_dialect_is_spoken_from_the_next_request_on(
    server: MockServer, admin: Admin
) -> None:
    caller = Caller(server)
    assert caller("/external/users?limit=100").status == 422
    said = admin("PUT", "lanes/main/dialect", {"dialect": "over_limit=clamp"})
    assert said["text"] == "documented over_limit=clamp"
    assert caller("/external/users?limit=100").json["limit"] == 99
    assert admin("PUT", "lanes/main/dialect", {"dialect": "hostile"})["conforms"] is False


def test_a_rate_is_set_and_lifted(server: MockServer, admin: Admin) -> None:
    caller = Caller(server)
    assert admin("PUT", "lanes/main/rate", {"rate": "0.01/s burst=1"})["rate"].startswith("0.01/s")
    assert [caller("/external/users").status for _ in range(2)] == [200, 429]
    assert admin("PUT", "lanes/main/rate", {"rate": None}) == {"rate": None}
    assert caller("/external/users").status == 200


def test_time_is_made_virtual_and_moved(admin: Admin) -> None:
    path = "lanes/main/clock"
    assert admin("POST", path, {"virtual": True})["now"] == "2026-01-01T00:00:00.000Z"
    assert admin("POST", path, {"advance": 90})["now"] == "2026-01-01T00:01:30.000Z"
    assert admin("POST", path, {"virtual": True})["now"] == "2026-01-01T00:01:30.000Z"
    moved = admin("POST", path, {"start": "2030-05-01T12:00:00+02:00", "advance": 0.5})
    assert moved["now"] == "2030-05-01T10:00:00.500Z"
    assert admin("POST", path, {"virtual": False})["virtual"] is False
    status, message = admin.problem("POST", path, {"advance": 1})
    assert (status, "virtual" in message) == (409, True)


def test_the_world_is_changed_by_hand(server: MockServer, admin: Admin) -> None:
    path, world = "lanes/main/world", server.world
    before = admin("GET", path)
    assert before["fingerprint"] == world.fingerprint()
    assert before["total_messages"] == world.total_messages
    assert before["messages_per_user"] == [0, 12]
    added = admin("POST", path, {"add_users": 3})
    assert added["added"] == world.user_ids()[-3:]
    assert added["total_users"] == world.total_users == 123
    (message,) = admin("POST", path, {"add_messages": {"user": 42, "count": 1}})["added"]
    assert message == world.message_ids(42)[-1]
    fields = {"body": "<b>hello</b>", "odd": {"deep": [1, None]}}
    admin("POST", path, {"edit_message": {"user": 42, "id": message, "fields": fields}})
    assert world.message(42, message)["body"] == "<b>hello</b>"
    admin("POST", path, {"edit_user": {"id": 42, "fields": {"name": "Ada"}}})
    assert world.user(42)["name"] == "Ada"
    admin("POST", path, {"remove_message": {"user": 42, "id": message}})
    assert message not in world.message_ids(42)
    admin("POST", path, {"remove_user": 42})
    assert 42 not in world.user_ids()
    assert admin("GET", path)["fingerprint"] != before["fingerprint"]


def test_the_world_changes_between_two_pages_and_the_audit_says_what_was_lost(
    server: MockServer, admin: Admin
) -> None:
    path = "lanes/main/drifts"
    everyone = server.world.user_ids()
    drift = {"route": "users", "after": 1, "delete": {"first": 3}}
    assert admin("POST", path, drift) == {"waiting": 1}
    caller = Caller(server)
    held = []
    for offset in range(0, 120, 50):
        page = caller(f"/external/users?offset={offset}&limit=50").json
        held += [user["id"] for user in page["users"]]
    assert admin("GET", path) == {"waiting": 0}
    audit = admin("POST", "lanes/main/audit", {"ids": held})
    assert audit["ok"] is False
    assert [lost["id"] for lost in audit["missing"]] == everyone[50:53]
    assert audit["missing"][0]["request"] == 2
    held += everyone[50:53]
    assert admin("POST", "lanes/main/audit", {"ids": held})["ok"] is True
    twice = admin("POST", "lanes/main/audit", {"ids": [*held, held[-1], 1]})
    assert [row["id"] for row in twice["repeated"]] == [held[-1]]
    assert twice["unexpected"] == [1]
    admin("POST", path, {"route": "messages", "user": 42, "after": 9, "add": 2})
    edit = {"rows": {"ids": [everyone[9]]}, "fields": {"name": "x"}}
    admin("POST", path, {"route": "users", "after": 9, "edit": edit})
    assert admin("GET", path) == {"waiting": 2}
    assert admin("DELETE", path) == {"waiting": 0}


# --- lanes -------------------------------------------------------------------------------------


def client_of(server: MockServer, lane: dict[str, Any], **options: Any) -> Client:
    return Client(server.url, lane["secret"], server.vendor, allow_http=True, **options)


def test_lanes_opened_over_http_are_worlds_of_their_own(server: MockServer, admin: Admin) -> None:
    name = "tests/test_a.py::test_it[ä +%&=1]"
    lane = admin("POST", "lanes", {"name": name, "seed": 2**64 - 1})
    path = f"lanes/{quote(name, safe='')}"
    assert (lane["name"], lane["seed"], lane["main"]) == (name, 2**64 - 1, False)
    assert lane["secret"].startswith("mock_")
    assert admin("GET", path) == lane
    admin("POST", f"{path}/world", {"remove_user": 42})
    admin("POST", f"{path}/faults", {"faults": ["users offset=99: status(404)"]})
    with client_of(server, lane) as client, server.client() as main:
        assert 42 in ids(main)
        assert 42 not in [user.id for user in client.users.page(limit=99)]
        assert client.users.page(limit=1).total == 119
        assert sum(admin("GET", path)["counts"].values()) == 2
        assert admin("DELETE", path) == {"closed": name}
        with pytest.raises(AuthenticationError):
            client.users.page()
    assert admin.problem("GET", path)[0] == 404


def test_a_lane_is_described_as_a_whole(server: MockServer, admin: Admin) -> None:
    lane = admin(
        "POST",
        "lanes",
        {
            "world": {"seed": 3, "users": 5, "messages_per_user": [1, 2]},
            "dialect": "lenient order=newest",
            "rate": "5/s burst=9 says=nothing",
            "faults": ["user: status(500); any: latency(1)"],
        },
    )
    assert lane["name"] != admin("POST", "lanes", {})["name"]
    assert lane["world"]["total_users"] == 5
    assert lane["dialect"]["text"] == "lenient order=newest"
    assert lane["rate"] == "5/s burst=9 says=nothing"
    assert len(lane["faults"]) == 2
    with client_of(server, lane) as client:
        assert ids(client) == World(3, 5, (1, 2)).user_ids()[::-1]


def test_a_name_is_given_once_and_the_main_lane_stays(admin: Admin) -> None:
    admin("POST", "lanes", {"name": "a"})
    assert admin.problem("POST", "lanes", {"name": "a"})[0] == 409
    assert admin.problem("POST", "lanes", {"name": "main"})[0] == 409
    status, message = admin.problem("DELETE", "lanes/main")
    assert (status, "main" in message) == (409, True)


# --- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "nothing", None, 404, "/__mock/state"),
        ("GET", "lanes/main/nothing", None, 404, "journal"),
        ("GET", "lanes/main/world/nothing", None, 404, "journal"),
        ("GET", "lanes/other", None, 404, "other"),
        ("GET", "lanes/%FF", None, 400, "UTF-8"),
        ("GET", "state?x=1", None, 400, "no arguments"),
        ("POST", "state", None, 405, "GET"),
        ("GET", "lanes/main/journal?limit=1001", None, 400, "1000"),
        ("GET", "lanes/main/journal?after=-1", None, 400, "after"),
        ("GET", "lanes/main/journal?after=1&after=2", None, 400, "once"),
        ("GET", "lanes/main/journal?from=1", None, 400, "after and limit"),
        ("GET", "lanes/main/world/users/x", None, 400, "digits"),
        ("GET", "lanes/main/world/users/1", None, 404, "user 1"),
        ("GET", "lanes/main/world/users/1/messages", None, 404, "user 1"),
        ("DELETE", "lanes/main/faults/x", None, 404, "no fault"),
        ("DELETE", "lanes/main/faults/99", None, 404, "no fault"),
        ("POST", "lanes", None, 400, "body"),
        ("POST", "lanes", b"{} {}", 400, "body"),
        ("POST", "lanes", b"\xff", 400, "body"),
        ("POST", "lanes", [], 400, "body"),
        ("POST", "lanes", {"nam": "x"}, 400, "`name`"),
        ("POST", "lanes", {"name": ""}, 400, "name"),
        ("POST", "lanes", {"name": "a\nb"}, 400, "name"),
        ("POST", "lanes", {"name": "x" * 201}, 400, "200"),
        ("POST", "lanes", {"seed": -1}, 400, "seed"),
        ("POST", "lanes", {"world": {"users": 2**40}}, 400, "users"),
        ("POST", "lanes", {"world": {"messages_per_user": [3, 1]}}, 400, "messages_per_user"),
        ("POST", "lanes", {"dialect": "nice"}, 400, "documented"),
        ("POST", "lanes", {"rate": "fast"}, 400, "10/s"),
        ("POST", "lanes", {"faults": ["users: explode()"]}, 400, "explode"),
        ("PUT", "lanes/main/dialect", {"dialect": "order=random"}, 400, "shuffled"),
        ("PUT", "lanes/main/dialect", {}, 400, "dialect"),
        ("PUT", "lanes/main/rate", {}, 400, "rate"),
        ("PUT", "lanes/main/rate", {"rate": 5}, 400, "rate"),
        ("PUT", "lanes/main/rate", {"rate": "0/s"}, 400, "per_second"),
        ("POST", "lanes/main/faults", {"faults": "any: garbage()"}, 400, "faults"),
        ("POST", "lanes/main/faults", {"faults": ["any: garbage()", 3]}, 400, "faults[1]"),
        ("POST", "lanes/main/world", {"add_users": 0}, 400, "10000"),
        ("POST", "lanes/main/world", {"add_users": 10_001}, 400, "10000"),
        ("POST", "lanes/main/world", {"add_users": 1, "remove_user": 42}, 400, "body"),
        ("POST", "lanes/main/world", {"add_messages": {"user": 42}}, 400, "count"),
        ("POST", "lanes/main/world", {"add_messages": {"user": 1, "count": 1}}, 404, "user 1"),
        ("POST", "lanes/main/world", {"remove_user": 1}, 404, "user 1"),
        ("POST", "lanes/main/world", {"remove_message": {"user": 42, "id": 1}}, 404, "message 1"),
        ("POST", "lanes/main/world", {"edit_user": {"id": 42, "fields": {"id": 1}}}, 400, "id"),
        ("POST", "lanes/main/world", {"edit_user": {"id": 42, "fields": 3}}, 400, "fields"),
        ("POST", "lanes/main/world", {"grow": 1}, 400, "add_users"),
        ("POST", "lanes/main/drifts", {"route": "users", "after": 1}, 400, "exactly one"),
        ("POST", "lanes/main/drifts", {"route": "users", "after": 0, "add": 1}, 400, "after"),
        ("POST", "lanes/main/drifts", {"route": "user", "after": 1, "add": 1}, 400, "messages"),
        ("POST", "lanes/main/drifts", {"route": "users", "user": 1, "after": 1, "add": 1}, 400, "user"),
        (
            "POST",
            "lanes/main/drifts",
            {"route": "users", "after": 1, "delete": {"first": 0}},
            400,
            "delete.first",
        ),
        (
            "POST",
            "lanes/main/drifts",
            {"route": "users", "after": 1, "edit": {"rows": {"first": 1}, "fields": {"id": 1}}},
            400,
            "id",
        ),
        ("POST", "lanes/main/clock", {"virtual": 1}, 400, "virtual"),
        ("POST", "lanes/main/clock", {"virtual": True, "start": "yesterday"}, 400, "start"),
        ("POST", "lanes/main/clock", {"virtual": True, "advance": -1}, 400, "advance"),
        ("POST", "lanes/main/clock", {"virtual": True, "advance": 1e300}, 400, "advance"),
        ("POST", "lanes/main/audit", {"ids": [1.5]}, 400, "ids[0]"),
        ("GET", "lanes/main/audit", None, 405, "POST"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(
    admin: Admin, method: str, path: str, body: object, status: int, said: str
) -> None:
    problem = admin.problem(method, path, body)
    assert problem[0] == status, problem
    assert said in problem[1]


@pytest.mark.parametrize("path", ["state", "lanes", *(f"lanes/main{path}" for path in LANE_PATHS)])
def test_a_method_that_is_not_answered_is_told_which_are(admin: Admin, path: str) -> None:
    answered = []
    for method in METHODS:
        answer = admin.send(method, path, b"x")
        if answer.status == 405:
            allowed = answer.headers["allow"].split(", ")
            assert method not in allowed
            assert allowed
        else:
            answered.append(method)
    assert answered
    assert "PATCH" not in answered


def test_a_body_of_more_than_a_mebibyte_is_refused(server: MockServer) -> None:
    most = 1 << 20
    held = json.dumps({"ids": []}).encode()
    assert Admin(server).send("POST", "lanes/main/audit", held.ljust(most)).status == 200
    answer = Admin(server).send("POST", "lanes/main/audit", held.ljust(most + 1))
    assert answer.status == 413
    assert str(most) in answer.json["error"]["message"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
plausible = st.fixed_dictionaries(
    {},
    optional={
        name: json_values | st.integers(0, 50) | st.sampled_from(["users", "any: garbage()", "42"])
        for name in (
            *("name", "seed", "world", "dialect", "rate", "faults", "virtual", "start", "advance"),
            *("route", "after", "delete", "add", "edit", "ids", "messages_of", "add_users"),
            *("add_messages", "remove_user", "remove_message", "edit_user", "edit_message"),
        )
    },
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Admin]:
    with MockServer(World(users=5)) as server:
        yield Admin(server)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(["state", "lanes", *(f"lanes/main{path}" for path in LANE_PATHS)])
    | st.text().map(lambda text: f"lanes/{quote(text)}"),
    method=st.sampled_from(METHODS),
    body=st.binary(max_size=40) | (json_values | plausible).map(lambda value: json.dumps(value).encode()),
)
def test_no_body_is_too_odd(shared: Admin, path: str, method: str, body: bytes) -> None:
    answer = shared.send(method, path, body)
    assert answer.status < 500
    assert isinstance(answer.json, dict)
