"""What the mock's admin interface refuses, and what it says would be right."""

import json

import pytest


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("GET", "nothing", None, 404, "/__mock/state"),
        ("GET", "lanes/other", None, 404, "other"),
        ("GET", "state?x=1", None, 400, "no arguments"),
        ("POST", "state", None, 405, "GET"),
        ("GET", "lanes/main/journal?limit=1001", None, 400, "1000"),
        ("GET", "lanes/main/journal?from=1", None, 400, "`after` or `limit`"),
        ("DELETE", "lanes/main", None, 409, "main"),
        ("DELETE", "lanes/main/faults/99", None, 404, "no fault"),
        ("POST", "lanes", b"{} {}", 400, "body"),
        ("POST", "lanes", {"nam": "x"}, 400, "`name`"),
        ("POST", "lanes", {"seed": -1}, 400, "seed"),
        ("PUT", "lanes/main/dialect", {"dialect": "order=random"}, 400, "shuffled"),
        ("PUT", "lanes/main/rate", {"rate": 5}, 400, "rate"),
        ("POST", "lanes/main/faults", {"faults": ["any: garbage()", 3]}, 400, "faults[1]"),
        ("POST", "lanes/main/world", {"add_users": 10_001}, 400, "10000"),
        ("POST", "lanes/main/world", {"add_users": 1, "remove_user": 42}, 400, "body"),
        ("POST", "lanes/main/world", {"remove_user": 1}, 404, "user 1"),
        ("POST", "lanes/main/world", {"remove_message": {"user": 42, "id": 1}}, 404, "message 1"),
        ("POST", "lanes/main/world", {"edit_user": {"id": 42, "fields": {"id": 1}}}, 400, "id"),
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
        ("POST", "lanes/main/clock", {"virtual": True, "start": "yesterday"}, 400, "start"),
        ("POST", "lanes/main/clock", {"virtual": True, "advance": 1e300}, 400, "advance"),
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
