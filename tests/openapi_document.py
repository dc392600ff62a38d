"""The OpenAPI document, as something that answers are held against."""

from __future__ import annotations

import copy
import importlib.resources
import json
from typing import Any

import pytest

from by_hand import Answer

JSON = "application/json"


def load() -> Any:
    """The document of the wheel."""
    return json.loads((importlib.resources.files("backread") / "openapi.json").read_bytes())


def close(part: Any) -> Any:
    """The same document, with every object closed to fields that it does not list."""
    if isinstance(part, list):
        return [close(value) for value in part]
    if not isinstance(part, dict):
        return part
    closed = {name: close(value) for name, value in part.items()}
    # Without a type of its own it only narrows another schema, which names the fields.
    if part.get("type") == "object" and "properties" in part:
        closed["additionalProperties"] = False
    return closed


class Document:
    """What may be answered to a GET of each path; ``closed`` forbids fields not listed."""

    def __init__(self, *, closed: bool = False) -> None:
        self._jsonschema = pytest.importorskip("jsonschema")
        told = load()
        self.told = close(told) if closed else told
        self.paths: dict[str, Any] = self.told["paths"]

    def resolve(self, part: Any) -> Any:
        """What a reference within the document leads to."""
        while "$ref" in part:
            place = self.told
            for step in part["$ref"].removeprefix("#/").split("/"):
                place = place[step]
            part = place
        return part

    def answers(self) -> set[tuple[str, int]]:
        """Every path with every status that is listed for it."""
        return {
            (path, int(status))
            for path, methods in self.paths.items()
            for status in methods["get"]["responses"]
        }

    def codes(self, path: str, status: int) -> set[str]:
        """The words that a refusal's body may carry."""
        response = self.resolve(self.paths[path]["get"]["responses"][str(status)])
        _, narrowed = response["content"][JSON]["schema"]["allOf"]
        return set(narrowed["properties"]["error"]["properties"]["code"]["enum"])

    def check(self, path: str, answer: Answer) -> None:
        """Raises where status, content type, headers or body are not as listed for the path."""
        responses = self.paths[path]["get"]["responses"]
        assert str(answer.status) in responses, f"{path}: {answer.status} is not listed"
        response = self.resolve(responses[str(answer.status)])
        assert answer.headers["content-type"] == f"{JSON}; charset=utf-8"
        for name, reference in response["headers"].items():
            header = self.resolve(reference)
            given = answer.headers.get(name.lower())
            assert given is not None or not header["required"], f"{path}: no header {name}"
            if given is not None:
                self.validate(header["schema"], given)
        self.validate(response["content"][JSON]["schema"], answer.json)

    def validate(self, schema: Any, value: Any) -> None:
        """Raises jsonschema's error where the value does not fit."""
        whole = {**copy.copy(schema), "components": self.told["components"]}
        self._jsonschema.Draft202012Validator(whole).validate(value)
