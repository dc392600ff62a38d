"""The OpenAPI document: served, in the wheel, valid, and true of the mock's answers."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import MockServer
from by_hand import MESSAGE_FIELDS, USER_FIELDS, Caller


@pytest.fixture
def ask(backread_server: MockServer) -> Iterator[Caller]:
    caller = Caller(backread_server)
    yield caller
    caller.connection.close()


def document() -> Any:
    return json.loads((importlib.resources.files("backread") / "openapi.json").read_bytes())


def test_the_document_is_served_to_all_and_is_that_of_the_wheel(ask: Caller) -> None:
    answer = ask("/openapi.json", Authorization=None, Accept=None)
    assert answer.status == 200
    assert answer.json == document()


def test_the_document_is_openapi_and_has_the_four_operations() -> None:
    told = document()
    assert re.fullmatch(r"3\.1\.\d+", told["openapi"])
    assert {
        (path, *methods.keys() - {"parameters"}) for path, methods in told["paths"].items()
    } == {
        ("/external/users", "get"),
        ("/external/users/{USER_ID}", "get"),
        ("/external/users/{USER_ID}/messages", "get"),
        ("/external/users/{USER_ID}/messages/{MESSAGE_ID}", "get"),
    }
    assert list(told["components"]["schemas"]["User"]["properties"]) == USER_FIELDS
    assert list(told["components"]["schemas"]["Message"]["properties"]) == MESSAGE_FIELDS


def test_each_reference_of_the_document_leads_somewhere() -> None:
    told = document()

    def references(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            for name, value in part.items():
                if name == "$ref":
                    yield value
                yield from references(value)
        elif isinstance(part, list):
            for value in part:
                yield from references(value)

    found = set(references(told))
    assert found
    for reference in found:
        place = told
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def test_the_document_is_valid() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document(), cls=validator.OpenAPIV31SpecValidator)


def test_what_is_answered_fits_the_document(backread_server: MockServer, ask: Caller) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    told = document()
    world = backread_server.world
    user_id = next(one for one in world.user_ids() if world.message_ids(one))
    message_id = world.message_ids(user_id)[0]
    checked = set()
    for path, target in {
        "/external/users": "/external/users?limit=99",
        "/external/users/{USER_ID}": f"/external/users/{user_id}",
        "/external/users/{USER_ID}/messages": f"/external/users/{user_id}/messages",
        "/external/users/{USER_ID}/messages/{MESSAGE_ID}": (
            f"/external/users/{user_id}/messages/{message_id}"
        ),
    }.items():
        responses = told["paths"][path]["get"]["responses"]
        for headers in ({}, {"Authorization": None}, {"Accept": "*/*"}):
            answer = ask(target, **headers)
            response = responses[str(answer.status)]
            while "$ref" in response:
                response = told["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
            schema = response["content"]["application/json"]["schema"]
            jsonschema.Draft202012Validator({**schema, "components": told["components"]}).validate(
                answer.json
            )
            checked.add((path, answer.status))
    assert len(checked) == 12
