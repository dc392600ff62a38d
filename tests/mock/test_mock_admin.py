"""The mock's admin interface below ``/__mock/``: each route, each wrong input, and who may ask."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from backread import Client
from backread.errors import AuthenticationError
from backread.testing import MockServer, World
from helpers.raw_requests import Caller


@pytest.fixture
def caller(admin_server: MockServer) -> Iterator[Caller]:
    caller = Caller(admin_server)
    yield caller
    caller.connection.close()


def ids(client: Client) -> list[int]:
    return [user.id for user in client.users.list()]


def at_rest(lane: dict[str, Any]) -> dict[str, Any]:
    """A lane but for its clock, which goes on."""
    return {name: value for name, value in lane.items() if name != "clock"}


# --- who may ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["state", "lanes", "lanes/main/journal", "nothing/here", "x%FF"])
def test_without_the_admin_token_there_is_nothing_to_see(caller, admin_server, path):
    for sent in (None, f"Bearer {admin_server.secret}", "Bearer ", admin_server.admin_token):
        answer = caller(f"/__mock/{path}", Authorization=sent)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "admin_token" in answer.json["error"]["message"].lower()


def test_the_admin_token_is_no_secret_of_a_lane(caller, admin_server):
    assert (
        caller("/external/users", Authorization=f"Bearer {admin_server.admin_token}").status == 401
    )
    assert len(admin_server.admin_token) == 32
    with MockServer() as other:
        assert other.admin_token != admin_server.admin_token
    assert admin_server.admin_token not in repr(admin_server)


def test_no_page_of_another_site_may_read_or_frame_this(admin_server, admin):
    for answer in (
        admin.send("GET", "state"),
        admin.send("GET", ""),
        admin.send("OPTIONS", "state"),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy


def test_admin_requests_are_neither_counted_nor_noted(admin_server, admin):
    admin("GET", "state")
    admin.send("GET", "state", token="0" * 32)
    admin.send("GET", "")
    assert sum(admin_server.counts().values()) == 0
    assert admin("GET", "lanes/main/journal")["entries"] == []


# --- the page -------------------------------------------------------------------------------------


def test_the_page_and_its_files_need_no_token(caller, admin_server):
    caller.headers = {}
    page = caller("/__mock/")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name, kind in (("js", "text/javascript"), ("css", "text/css"), ("svg", "image/svg+xml")):
        answer = caller(f"/__mock/inspector.{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert f'"inspector.{name}"'.encode() in page.body
        assert admin_server.admin_token.encode() not in answer.body
    assert admin_server.secret.encode() not in page.body
    moved = caller("/__mock")
    assert (moved.status, moved.headers["location"]) == (308, "/__mock/")
    assert caller("/__mock/", "POST").headers["allow"] == "GET"


# --- what there is to see -------------------------------------------------------------------------


def test_the_state_shows_the_server_and_its_lanes(admin_server, admin):
    with admin_server.client() as client:
        ids(client)
    state = admin("GET", "state")
    assert state["server"]["url"] == admin_server.url
    assert state["server"]["vendor"] == admin_server.vendor
    (lane,) = state["lanes"]
    assert (lane["name"], lane["secret"], lane["main"]) == ("main", admin_server.secret, True)
    assert lane["counts"]["users"] == 2
    assert lane["statuses"] == {"200": 2}
    assert lane["dialect"]["text"] == "documented"
    assert lane["dialect"]["conforms"] is True
    assert lane["world"]["total_users"] == 120
    assert lane["clock"]["virtual"] is False
    assert at_rest(admin("GET", "lanes/main")) == at_rest(lane)
    assert at_rest(admin("GET", "lanes")["lanes"][0]) == at_rest(lane)


def test_the_journal_goes_on_where_it_was_read_to(caller, admin_server, admin):
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
    assert sum(admin_server.counts().values()) == 0


# --- what there is to switch ----------------------------------------------------------------------


def test_a_fault_is_set_listed_and_taken_away(caller, admin_server, admin):
    rule = "users offset=0: status(404)"
    (fault,) = admin("POST", "lanes/main/faults", {"faults": [rule]})["faults"]
    assert (fault["rule"], fault["fired"]) == (rule, 0)
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


def test_dialect_and_rate_are_set_and_lifted(caller, admin):
    said = admin("PUT", "lanes/main/dialect", {"dialect": "hostile"})
    assert (said["text"], said["conforms"]) == ("hostile", False)
    assert caller("/external/users?limit=100").json["limit"] == 50
    assert admin("PUT", "lanes/main/rate", {"rate": "0.01/s burst=1"})["rate"].startswith("0.01/s")
    assert [caller("/external/users").status for _ in range(2)] == [200, 429]
    assert admin("PUT", "lanes/main/rate", {"rate": None}) == {"rate": None}
    assert caller("/external/users").status == 200


def test_time_is_made_virtual_and_moved(admin):
    path = "lanes/main/clock"
    assert admin("POST", path, {"virtual": True})["now"] == "2026-01-01T00:00:00.000Z"
    assert admin("POST", path, {"advance": 90})["now"] == "2026-01-01T00:01:30.000Z"
    assert admin("POST", path, {"virtual": True})["now"] == "2026-01-01T00:01:30.000Z"
    moved = admin("POST", path, {"start": "2030-05-01T12:00:00+02:00", "advance": 0.5})
    assert moved["now"] == "2030-05-01T10:00:00.500Z"
    assert admin("POST", path, {"virtual": False})["virtual"] is False
    status, message = admin.problem("POST", path, {"advance": 1})
    assert (status, "virtual" in message) == (409, True)


def test_the_world_is_changed_by_hand(admin_server, admin):
    path, world = "lanes/main/world", admin_server.world
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
    caller, admin_server, admin
):
    path = "lanes/main/drifts"
    everyone = admin_server.world.user_ids()
    drift = {"route": "users", "after": 1, "delete": {"first": 3}}
    assert admin("POST", path, drift) == {"waiting": 1}
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


# --- lanes ----------------------------------------------------------------------------------------


def test_lanes_opened_over_http_are_worlds_of_their_own(admin_server, admin):
    name, path = "test_a-1", "lanes/test_a-1"
    described = {
        "name": name,
        "seed": 2**64 - 1,
        "world": {"seed": 3, "users": 5, "messages_per_user": [1, 2]},
        "dialect": "lenient order=newest",
        "rate": "5/s burst=9 says=nothing",
        "faults": ["user: status(500); any: latency(1)"],
    }
    lane = admin("POST", "lanes", described)
    assert (lane["main"], lane["world"]["total_users"], len(lane["faults"])) == (False, 5, 2)
    told = {each: lane[each] for each in ("name", "seed", "rate")}
    assert told.items() <= described.items()
    assert lane["dialect"]["text"] == "lenient order=newest"
    assert lane["secret"].startswith("mock_")
    assert at_rest(admin("GET", path)) == at_rest(lane)
    admin("POST", f"{path}/world", {"remove_user": 42})
    client = Client(admin_server.url, lane["secret"], admin_server.vendor)
    with client, admin_server.client() as main:
        assert 42 in ids(main)
        assert ids(client) == World(3, 5, (1, 2)).user_ids()[:0:-1]
        assert sum(admin("GET", path)["counts"].values()) == 1
        assert admin("DELETE", path) == {"closed": name}
        with pytest.raises(AuthenticationError):
            client.users.page()
    assert admin.problem("GET", path)[0] == 404


# --- what is refused, and what would be right -----------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "nothing", None, 404, "/__mock/state"),
        ("GET", "state?x=1", None, 400, "no arguments"),
        ("GET", "lanes/main/journal?from=1", None, 400, "`after` or `limit`"),
        ("DELETE", "lanes/main", None, 409, "main"),
        ("DELETE", "lanes/main/faults/99", None, 404, "no fault"),
        ("POST", "lanes", b"{} {}", 400, "body"),
        ("POST", "lanes", {"nam": "x"}, 400, "`name`"),
        ("PUT", "lanes/main/dialect", {"dialect": "order=random"}, 400, "shuffled"),
        ("PUT", "lanes/main/rate", {"rate": 5}, 400, "rate"),
        ("POST", "lanes/main/faults", {"faults": ["any: garbage()", 3]}, 400, "faults[1]"),
        ("POST", "lanes/main/world", {"add_users": 1, "remove_user": 42}, 400, "body"),
        ("POST", "lanes/main/world", {"remove_user": 1}, 404, "user 1"),
        ("POST", "lanes/main/world", {"edit_user": {"id": 42, "fields": {"id": 1}}}, 400, "id"),
        ("POST", "lanes/main/drifts", {"route": "users", "after": 1}, 400, "exactly one"),
        (
            "POST",
            "lanes/main/drifts",
            {"route": "users", "after": 1, "delete": {"first": 0}},
            400,
            "delete.first",
        ),
        ("POST", "lanes/main/clock", {"virtual": True, "start": "yesterday"}, 400, "start"),
        ("POST", "lanes/main/audit", {"ids": [1.5]}, 400, "ids[0]"),
        ("GET", "lanes/main/audit", None, 405, "POST"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(admin, method, path, body, status, said):
    problem = admin.problem(method, path, body)
    assert problem[0] == status, problem
    assert said in problem[1]


def test_a_body_of_more_than_a_mebibyte_is_refused(admin):
    most = 1 << 20
    held = json.dumps({"ids": []}).encode()
    assert admin.send("POST", "lanes/main/audit", held.ljust(most)).status == 200
    for length in (most + 1, 20 * most):
        status, message = admin.problem("POST", "lanes/main/audit", held.ljust(length))
        assert (status, str(most) in message) == (413, True)
