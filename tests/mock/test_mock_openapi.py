"""The OpenAPI document: served, in the wheel, and valid."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import MockServer, World
from helpers import openapi_document
from helpers.raw_requests import MESSAGE_FIELDS, USER_FIELDS, Caller

ACCEPTED = "application/vnd.{}.v1+json"


@pytest.fixture
def ask(backread_server: MockServer) -> Iterator[Caller]:
    caller = Caller(backread_server)
    yield caller
    caller.connection.close()


def test_the_document_is_served_to_all_and_is_that_of_the_wheel(ask):
    answer = ask("/openapi.json", Authorization=None, Accept=None)
    assert answer.status == 200
    assert answer.json == openapi_document.load()


def test_the_served_document_has_the_media_type_of_the_servers_vendor():
    def media_types(document: Any) -> set[str]:
        answers = (each["get"]["responses"]["200"] for each in document["paths"].values())
        return {media_type for answer in answers for media_type in answer["content"]}

    assert media_types(openapi_document.load()) == {ACCEPTED.format("example"), "application/json"}
    with MockServer(World(users=1), vendor="acme") as server:
        ask = Caller(server)
        served = ask("/openapi.json").json
        ask.connection.close()
    assert media_types(served) == {ACCEPTED.format("acme"), "application/json"}


def test_a_sender_must_go_with_its_sender_type():
    document = openapi_document.Document()
    message = document.told["components"]["schemas"]["Message"]
    messages = document.told["components"]["schemas"]["MessagePage"]["examples"][0]["messages"]
    senders = {one["sender_type"]: one["sender"] for one in messages}
    assert senders.keys() == {"user", "operator", "system"}
    for sender_type in senders:
        for of, sender in senders.items():
            problem = document.misfit(
                message, {**messages[0], "sender_type": sender_type, "sender": sender}
            )
            assert (problem is None) is (sender_type in (of, "system")), (sender_type, of)


def test_each_example_of_the_document_fits_its_schema():
    document = openapi_document.Document(closed=True)
    seen = []
    for name, schema in document.told["components"]["schemas"].items():
        for example in schema.get("examples", ()):
            assert document.misfit(schema, example) is None
            seen.append(name)
    assert {"User", "Message", "UserPage", "MessagePage"} <= set(seen)


def test_the_document_is_openapi_and_has_the_four_operations():
    told = openapi_document.load()
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


def test_the_document_is_valid():
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(openapi_document.load(), cls=validator.OpenAPIV31SpecValidator)
