"""The OpenAPI document: served, in the wheel, and valid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import openapi_document
from backread.testing import MockServer
from by_hand import MESSAGE_FIELDS, USER_FIELDS, Caller


@pytest.fixture
def ask(backread_server: MockServer) -> Iterator[Caller]:
    caller = Caller(backread_server)
    yield caller
    caller.connection.close()


def test_the_document_is_served_to_all_and_is_that_of_the_wheel(ask: Caller) -> None:
    answer = ask("/openapi.json", Authorization=None, Accept=None)
    assert answer.status == 200
    assert answer.json == openapi_document.load()


def test_the_document_is_openapi_and_has_the_four_operations() -> None:
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


def test_each_reference_of_the_document_leads_somewhere() -> None:
    told = openapi_document.load()

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
    validator.validate(openapi_document.load(), cls=validator.OpenAPIV31SpecValidator)
