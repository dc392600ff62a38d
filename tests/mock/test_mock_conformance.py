"""What the mock answers is what the OpenAPI document says, no more and no less."""

import dataclasses
import importlib.resources
import json
from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import Dialect, MockServer, World
from helpers.raw_requests import Answer, Caller

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


SWITCHES = {
    "strict": ["yes", "no"],
    "over_limit": ["refuse", "clamp", "ignore"],
    "max_limit": ["99", "50"],
    "default_limit": ["25", "99"],
    "order": ["id", "newest", "ties", "shuffled"],
    "total": ["exact", "stale", "capped", "null", "low", "high"],
    "total_cap": ["10000", "20"],
    "past_end": ["empty", "not_found", "last_page"],
    "nulls": ["documented", "null", "missing", "both"],
    "sender_type": ["documented", "others"],
    "extra_fields": ["none", "some"],
    "ids": ["integer", "large", "text"],
    "short_pages": ["none", "some"],
    "hints": ["follow", "lag", "never"],
    "files": ["elsewhere", "own"],
}
BUNDLES = ["documented", "lenient", "hostile"]
ONE_BY_ONE = [f"{name}={value}" for name, values in SWITCHES.items() for value in values]

USERS = "/external/users"
USER = "/external/users/{USER_ID}"
MESSAGES = "/external/users/{USER_ID}/messages"
MESSAGE = "/external/users/{USER_ID}/messages/{MESSAGE_ID}"


def pages(total: int) -> list[str]:
    """Queries for the start, the middle, the end and past the end of a list."""
    offsets = {0, total // 2, max(total - 1, 0), total, total + 1, 2**63 - 1}
    asked = [f"?offset={offset}&limit={limit}" for offset in offsets for limit in (1, 99)]
    return ["", "?limit=99", f"?offset={total // 3}", *asked]


def reads(world: World) -> Iterator[tuple[str, str]]:
    """Paths of the document, each with targets that there is something at."""
    by_length = sorted(world.user_ids(), key=lambda one: len(world.message_ids(one)))
    for query in pages(world.total_users):
        yield USERS, USERS + query
    for user_id in world.user_ids()[::10]:
        yield USER, f"{USERS}/{user_id}"
    for user_id in (by_length[0], by_length[len(by_length) // 2], by_length[-1]):
        ids = world.message_ids(user_id)
        for query in pages(len(ids)):
            yield MESSAGES, f"{USERS}/{user_id}/messages{query}"
        for message_id in ids[::5]:
            yield MESSAGE, f"{USERS}/{user_id}/messages/{message_id}"


def refusals(world: World) -> Iterator[tuple[str, str]]:
    """Paths of the document, each with targets that the documented dialect refuses."""
    user = f"{USERS}/{world.user_ids()[0]}"
    message_id = world.add_messages(world.user_ids()[0])[0]
    for path, listing in ((USERS, USERS), (MESSAGES, f"{user}/messages")):
        for value in ("0", "100", "-1", "+1", "1.0", "01", "x", ""):
            yield path, f"{listing}?limit={value}"
        for value in ("-1", "9223372036854775808", "1e3", "00", "%20", ""):
            yield path, f"{listing}?offset={value}"
        yield path, f"{listing}?limit=5&limit=5"
        yield path, f"{listing}?page=1"
    yield USER, f"{user}?limit=5"
    yield MESSAGE, f"{user}/messages/{message_id}?x"
    for odd in ("41", "0", "-1", "+42", "042", "4.0", "x", "", "%34%32", "9" * 19, "9" * 30):
        yield USER, f"{USERS}/{odd}"
        yield MESSAGES, f"{USERS}/{odd}/messages"
        yield MESSAGE, f"{USERS}/{odd}/messages/{message_id}"
        yield MESSAGE, f"{user}/messages/{odd}"


def everything(dialect: str) -> Iterator[tuple[str, Answer]]:
    """Answers of every kind in a dialect, each with its path of the document."""
    world = World(seed=11, users=130, messages_per_user=(0, 150))
    with MockServer(world, dialect=dialect) as server:
        ask = Caller(server)
        for path, target in reads(world):
            yield path, ask(target)
        for path, target in dict(reads(world)).items():
            yield path, ask(target, Authorization=None)
            yield path, ask(target, Authorization="Bearer wrong")
            yield path, ask(target, Accept=None)
            yield path, ask(target, Accept="*/*")
            yield path, ask(target, "POST")
            yield path, ask(target, "OPTIONS")
        for path, target in refusals(world):
            yield path, ask(target)
        ask.connection.close()


def test_every_switch_is_tried():
    assert SWITCHES.keys() == {field.name for field in dataclasses.fields(Dialect)}


@pytest.mark.parametrize("dialect", [*BUNDLES, *ONE_BY_ONE])
def test_a_dialect_conforms_just_where_it_says_so(dialect):
    document = Document()
    broken = [
        (path, problem)
        for path, answer in everything(dialect)
        if (problem := document.problem(path, answer)) is not None
    ]
    assert Dialect(dialect).conforms is not bool(broken), broken[:3]


def test_the_documented_dialect_answers_all_that_is_listed_and_no_field_more():
    document = Document(closed=True)
    seen: dict[tuple[str, int], set[str]] = {}
    for path, answer in everything("documented"):
        assert document.problem(path, answer) is None
        codes = seen.setdefault((path, answer.status), set())
        if answer.status != 200:
            codes.add(answer.json["error"]["code"])
    assert seen.keys() == document.answers()
    for (path, status), codes in seen.items():
        assert status == 200 or codes == document.codes(path, status), (path, status)


ACCEPTED = "application/vnd.{}.v1+json"


def test_the_served_document_has_the_media_type_of_the_servers_vendor():
    def media_types(document: Any) -> set[str]:
        answers = (each["get"]["responses"]["200"] for each in document["paths"].values())
        return {media_type for answer in answers for media_type in answer["content"]}

    assert media_types(load()) == {ACCEPTED.format("example"), "application/json"}
    with MockServer(World(users=1), vendor="acme") as server:
        ask = Caller(server)
        served = ask("/openapi.json", Authorization=None, Accept=None).json
        ask.connection.close()
    assert media_types(served) == {ACCEPTED.format("acme"), "application/json"}
    assert served["components"] == load()["components"]


def test_each_example_of_the_document_fits_its_schema():
    document = Document(closed=True)
    seen = []
    for name, schema in document.told["components"]["schemas"].items():
        for example in schema.get("examples", ()):
            assert document.misfit(schema, example) is None
            seen.append(name)
    assert {"User", "Message", "UserPage", "MessagePage"} <= set(seen)


def test_the_document_is_valid():
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(load(), cls=validator.OpenAPIV31SpecValidator)
