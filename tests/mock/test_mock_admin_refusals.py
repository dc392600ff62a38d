"""What the mock's admin interface refuses, and what it says would be right."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backread.testing import MockServer, World
from helpers.raw_requests import Admin

LANE_PATHS = [
    "",
    "/journal",
    "/dialect",
    "/rate",
    "/faults",
    "/faults/1",
    "/world",
    "/drifts",
    "/clock",
    "/audit",
]
METHODS = ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "nothing", None, 404, "/__mock/state"),
        ("GET", "lanes/main/nothing", None, 404, "journal"),
        ("GET", "lanes/other", None, 404, "other"),
        ("GET", "state?x=1", None, 400, "no arguments"),
        ("POST", "state", None, 405, "GET"),
        ("GET", "lanes/main/journal?limit=1001", None, 400, "1000"),
        ("GET", "lanes/main/journal?after=-1", None, 400, "after"),
        ("GET", "lanes/main/journal?after=1&after=2", None, 400, "duplicate field `after`"),
        ("GET", "lanes/main/journal?from=1", None, 400, "`after` or `limit`"),
        ("DELETE", "lanes/main/faults/x", None, 404, "no fault"),
        ("DELETE", "lanes/main/faults/99", None, 404, "no fault"),
        ("POST", "lanes", None, 400, "body"),
        ("POST", "lanes", b"{} {}", 400, "body"),
        ("POST", "lanes", [], 400, "body"),
        ("POST", "lanes", {"nam": "x"}, 400, "`name`"),
        ("POST", "lanes", {"name": ""}, 400, "name"),
        ("POST", "lanes", {"seed": -1}, 400, "seed"),
        ("POST", "lanes", {"faults": ["users: explode()"]}, 400, "explode"),
        ("PUT", "lanes/main/dialect", {"dialect": "order=random"}, 400, "shuffled"),
        ("PUT", "lanes/main/dialect", {}, 400, "dialect"),
        ("PUT", "lanes/main/rate", {}, 400, "rate"),
        ("PUT", "lanes/main/rate", {"rate": 5}, 400, "rate"),
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
        (
            "POST",
            "lanes/main/drifts",
            {"route": "users", "user": 1, "after": 1, "add": 1},
            400,
            "user",
        ),
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
def test_what_is_wrong_is_said_with_what_would_be_right(admin, method, path, body, status, said):
    problem = admin.problem(method, path, body)
    assert problem[0] == status, problem
    assert said in problem[1]


@pytest.mark.parametrize("path", ["state", "lanes", *(f"lanes/main{path}" for path in LANE_PATHS)])
def test_a_method_that_is_not_answered_is_told_which_are(admin, path):
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


def test_a_body_of_more_than_a_mebibyte_is_refused(admin):
    most = 1 << 20
    held = json.dumps({"ids": []}).encode()
    assert admin.send("POST", "lanes/main/audit", held.ljust(most)).status == 200
    for length in (most + 1, 20 * most):
        status, message = admin.problem("POST", "lanes/main/audit", held.ljust(length))
        assert (status, str(most) in message) == (413, True)


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
    with MockServer(World(users=5)) as admin_server, Admin(admin_server) as admin:
        yield admin


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(["state", "lanes", *(f"lanes/main{path}" for path in LANE_PATHS)])
    | st.text().map(lambda text: f"lanes/{quote(text)}"),
    method=st.sampled_from(METHODS),
    body=st.binary(max_size=40)
    | (json_values | plausible).map(lambda value: json.dumps(value).encode()),
)
def test_no_body_is_too_odd(shared, path, method, body):
    answer = shared.send(method, path, body)
    assert answer.status < 500
    assert isinstance(answer.json, dict)
