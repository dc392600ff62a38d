"""The OpenAPI document, as something that answers are held against."""

import importlib.resources
import json
from typing import Any

import pytest

from helpers.raw_requests import Answer

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
        _, narrowed = self.resolve(response["content"][JSON]["schema"])["allOf"]
        return set(narrowed["properties"]["error"]["properties"]["code"]["enum"])

    def problem(self, path: str, answer: Answer) -> str | None:
        """What of status, content type, headers or body is not as listed for the path."""
        responses = self.paths[path]["get"]["responses"]
        if str(answer.status) not in responses:
            return f"status {answer.status} is not listed"
        response = self.resolve(responses[str(answer.status)])
        if answer.headers["content-type"] != f"{JSON}; charset=utf-8":
            return f"content type {answer.headers['content-type']}"
        for name, reference in response["headers"].items():
            header = self.resolve(reference)
            given = answer.headers.get(name.lower())
            if given is None:
                return f"no header {name}"
            if (problem := self.misfit(header["schema"], given)) is not None:
                return f"{name}: {problem}"
        return self.misfit(response["content"][JSON]["schema"], answer.json)

    def misfit(self, schema: Any, value: Any) -> str | None:
        """Where and why a value does not fit a schema."""
        whole = {**schema, "components": self.told["components"]}
        for error in self._jsonschema.Draft202012Validator(whole).iter_errors(value):
            return f"{error.json_path}: {error.message[:200]}"
        return None
