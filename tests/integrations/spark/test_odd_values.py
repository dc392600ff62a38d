"""Values of another type than documented, as rows of Spark: none is missing, each is in extra."""

import json
from typing import Any

import pytest

import reference
from backread.integrations.spark import register
from canned import message, paged, user
from scripted_server import Request, ScriptedServer

VALUES: list[Any] = [
    *(True, 0, -1, 7.5, 2**63, -(2**70), "", "seven", "yesterday", "2024-03-05T09:31:07.042Z"),
    *([], [None], [17], [{}, 7], [{"name": 7}], {}, {"id": "7"}, {"id": 7, "name": []}, None),
]


def odd(row: dict[str, Any], first: int) -> list[dict[str, Any]]:
    """The row once for each field but the id and each value."""
    fields = [name for name in row if name != "id"]
    cases = [(name, value) for name in fields for value in VALUES]
    return [{**row, "id": first + at, name: value} for at, (name, value) in enumerate(cases)]


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_any_value_in_any_field_is_a_row(spark, resource):
    users = odd(user(1), 1) if resource == "users" else [user(5)]
    messages = odd(message(1), 1)

    def service(request: Request) -> bytes:
        key = "messages" if "messages" in request.path else "users"
        return paged(users if key == "users" else messages, key=key)(request)

    sent = users if resource == "users" else messages
    read = reference.rows(json.dumps({resource: sent}).encode(), resource, 5)
    expected = [reference.columns(row.model) for row in read]
    with ScriptedServer(service) as server:
        register(spark, base_url=server.url)
        frame = spark.read.format("backread").options(resource=resource, shards=2).load()
        rows = [reference.loaded(row) for row in frame.toArrow().to_pylist()]
    found = {row["id"]: row for row in rows}
    assert len(rows) == len(found) == len(sent)
    for row in expected:
        assert found[row["id"]] == row
