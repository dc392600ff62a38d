"""What the mock answers is what the OpenAPI document says: no more, and no less."""

import dataclasses
import itertools
import random
from collections.abc import Iterator

import pytest

from backread.testing import Dialect, MockServer, World
from helpers.openapi_document import Document
from helpers.raw_requests import Answer, Caller

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
}
BUNDLES = ["documented", "lenient", "hostile"]
ONE_BY_ONE = [f"{name}={value}" for name, values in SWITCHES.items() for value in values]
DRAWS = 24

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


def conforming() -> Iterator[str]:
    """Dialects that claim to conform, with all switches drawn."""
    dice = random.Random(3)
    while True:
        drawn = " ".join(f"{name}={dice.choice(values)}" for name, values in SWITCHES.items())
        if Dialect(drawn).conforms:
            yield drawn


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


@pytest.mark.parametrize("dialect", list(itertools.islice(conforming(), DRAWS)))
def test_dialects_that_claim_to_conform_do_so_together(dialect):
    document = Document()
    for path, answer in everything(dialect):
        assert document.problem(path, answer) is None


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
