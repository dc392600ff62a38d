"""What the mock answers is what the OpenAPI document says: no more, and no less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import MockServer, World
from by_hand import Answer, Caller
from openapi_document import Document

# The options of servers that claim to conform.
DIALECTS: dict[str, dict[str, Any]] = {"documented": {}}

USERS = "/external/users"
USER = "/external/users/{USER_ID}"
MESSAGES = "/external/users/{USER_ID}/messages"
MESSAGE = "/external/users/{USER_ID}/messages/{MESSAGE_ID}"


@pytest.fixture(scope="module", params=DIALECTS.values(), ids=DIALECTS.keys())
def server(request: pytest.FixtureRequest) -> Iterator[MockServer]:
    world = World(seed=11, users=230, messages_per_user=(0, 150))
    with MockServer(world, **request.param) as running:
        yield running


@pytest.fixture
def ask(server: MockServer) -> Iterator[Caller]:
    caller = Caller(server)
    yield caller
    caller.connection.close()


def pages(total: int) -> list[str]:
    """Queries for the start, the middle, the end and past the end of a list."""
    offsets = {0, 1, total // 2, max(total - 1, 0), total, total + 1, 2**63 - 1}
    asked = [f"?offset={offset}&limit={limit}" for offset in offsets for limit in (1, 25, 99)]
    return ["", "?limit=99", f"?offset={total // 3}", *asked]


def reads(world: World) -> Iterator[tuple[str, str]]:
    """Paths of the document, each with targets that there is something at."""
    by_length = sorted(world.user_ids(), key=lambda one: len(world.message_ids(one)))
    for query in pages(world.total_users):
        yield USERS, USERS + query
    for user_id in world.user_ids():
        yield USER, f"{USERS}/{user_id}"
    for user_id in (by_length[0], by_length[len(by_length) // 2], by_length[-1]):
        ids = world.message_ids(user_id)
        for query in pages(len(ids)):
            yield MESSAGES, f"{USERS}/{user_id}/messages{query}"
        for message_id in ids:
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


def everything(world: World, ask: Caller) -> Iterator[tuple[str, Answer]]:
    """Answers of every kind, each with its path of the document."""
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


def test_every_answer_is_as_the_document_says(server: MockServer, ask: Caller) -> None:
    document = Document()
    for path, answer in everything(server.world, ask):
        document.check(path, answer)


def test_the_documented_dialect_answers_all_that_is_listed_and_no_field_more() -> None:
    document = Document(closed=True)
    seen: dict[tuple[str, int], set[str]] = {}
    world = World(seed=11, users=230, messages_per_user=(0, 150))
    with MockServer(world) as server:
        ask = Caller(server)
        for path, answer in everything(world, ask):
            document.check(path, answer)
            codes = seen.setdefault((path, answer.status), set())
            if answer.status != 200:
                codes.add(answer.json["error"]["code"])
        ask.connection.close()
    assert seen.keys() == document.answers()
    for (path, status), codes in seen.items():
        assert status == 200 or codes == document.codes(path, status), (path, status)
