"""Models that were read are the ones that their classes make, and behave as those do."""

import contextlib
import copy
import dataclasses
import gc
import json
import pickle
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from backread import DecodeError
from backread.models import Message, OperatorSender, User
from helpers import expected_rows
from helpers.api_rows import envelope, message, paged, user, users
from helpers.scripted_server import answer

OPERATOR = message(1)["sender"]
ADA = {"id": 42, "name": "Ada", "email": "ada@example.com"}
ODD = {"vip": True, "tags": ["a", {"b": None}], "score": 1.5, "large": 2**70, "é😀": "\n"}

USERS = [
    user(1),
    {"id": 2},
    user(3, name=None, created_at=None, user_attributes=None),
    user(4, name='Ада 😀 "\\\n', user_attributes=[]),
    user(5, user_attributes=[{}, {"name": None, "value": "pro"}, {"name": "n", "unit": "people"}]),
    user(6, created_at="1969-12-31T23:59:59.999999Z", online_at="0001-01-01T00:00:00Z"),
    user(7, updated_at="9999-12-30T21:59:59.999999Z", online_at="2024-02-29T12:30:45+05:30"),
    user(2**63 - 1, **ODD),
    user(-(2**63)),
]
MESSAGES = [
    message(1),
    {"id": 2},
    message(3, body=None, read_by_user=None, created_at=None, auto_invitation=None, sender=None),
    message(4, sender_type="user", sender=ADA, file_url="https://example.com/a%20b"),
    message(5, sender_type="user", sender={**ADA, **ODD}),
    message(6, sender={**OPERATOR, "picture_thumb_url": "https://example.com/p.png"}),
    message(7, sender={**OPERATOR, "team": ["blue"]}, **ODD),
    message(8, sender_type="bot", sender={"id": 9, "name": "Robby"}),
    message(9, sender_type=None, sender={"id": 9, "name": "Robby"}),
    message(10, sender_type="user", sender={"name": "Ada"}),
    message(11, sender_type="operator", sender={"id": 4}),
]


def made(rows: list[Any], key: str) -> list[Any]:
    """The rows as their classes make them (see helpers/expected_rows.py)."""
    return [row.model for row in expected_rows.rows(json.dumps({key: rows}).encode(), key)]


MADE = [*made(USERS, "users"), *made(MESSAGES, "messages")]


@pytest.fixture
def read(face: Any, scripted: Any) -> list[Any]:
    """All rows, as a client reads them."""
    listed = face.client(scripted(paged(USERS))).users.list()
    sent = face.client(scripted(paged(MESSAGES, key="messages"))).messages.list(42)
    return [*face.collect(listed), *face.collect(sent)]


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, dataclasses.replace, lambda one: pickle.loads(pickle.dumps(one))],
)
def test_copies_of_read_models_are_equal(read, duplicate):
    assert [duplicate(one) for one in read] == MADE
    assert list(map(dataclasses.asdict, read)) == list(map(dataclasses.asdict, MADE))


def test_read_models_are_frozen_and_slotted(read):
    for one in read:
        assert not hasattr(one, "__dict__")
        for field in dataclasses.fields(one):
            with pytest.raises(FrozenInstanceError, match=field.name):
                setattr(one, field.name, None)
            with pytest.raises(FrozenInstanceError):
                delattr(one, field.name)


def test_reading_does_not_change_the_model_classes(read):
    """Reading may not change how they are made by hand."""
    assert read
    assert Message.__slots__ == tuple(field.name for field in dataclasses.fields(Message))
    assert Message.extra.__name__ == "extra"  # type: ignore[attr-defined]
    assert User(5, *[None] * 8).extra == {}
    with pytest.raises(TypeError):
        Message.extra.__get__(read[0])  # type: ignore[attr-defined]


def test_extra_of_each_read_model_is_separate(read):
    extras = [one.extra for one in read]
    assert len(set(map(id, extras))) == len(extras)
    extras[0]["seen"] = True
    assert [one for one in read if "seen" in one.extra] == [read[0]]
    assert all(one.extra is extra for one, extra in zip(read, extras, strict=True))


def test_senders_that_differ_in_anything_are_told_apart(face, scripted):
    kinds = [
        ("user", ADA),
        ("user", {**ADA, "name": None}),
        ("user", {**ADA, "email": "b@example.com"}),
        ("user", {**ADA, "vip": True}),
        ("user", {**ADA, "vip": False}),
        ("operator", ADA),
        ("operator", OPERATOR),
        ("operator", {**OPERATOR, "picture_thumb_url": ""}),
        ("bot", ADA),
        ("robot", ADA),
        *(("user", {**ADA, "id": number}) for number in range(100, 120)),
    ]
    rows = [
        message(number, sender_type=sender_type, sender=sender)
        for number, (sender_type, sender) in enumerate(kinds * 3)
    ]
    listing = face.client(scripted(paged(rows, key="messages"))).messages.list(42)
    assert face.collect(listing) == made(rows, "messages")


def chats(read: list[Any]) -> dict[str, Any]:
    """One of each kind that a dictionary of a model can be reached through."""
    of_messages = {one.id: one for one in read if isinstance(one, Message)}
    of_users = {one.id: one for one in read if isinstance(one, User)}
    return {
        "of a message": of_messages[1],
        "of a message with more": of_messages[7],
        "of a user": of_users[1],
    }


class Probe:
    """Something whose end can be seen."""


@pytest.fixture
def counted() -> Iterator[None]:
    """Only what a test collects is collected."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def assert_is_collected(seen: Callable[[], Any], listing: Any) -> None:
    # The answer to an await may be let go of a moment later, at the next look at anything native.
    deadline = time.monotonic() + 60
    while seen() is not None and time.monotonic() < deadline:
        assert listing.report.rows == 2
        gc.collect()
    assert seen() is None


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    "reach",
    [
        lambda one: one.extra,
        lambda one: one.sender.extra if isinstance(one, Message) else one.extra,
        lambda one: one.user_attributes[0].extra if isinstance(one, User) else one.extra,
    ],
)
@pytest.mark.parametrize("kind", ["of a message", "of a message with more", "of a user"])
def test_cycle_through_a_read_model_is_collected(each_face, scripted, kind, reach):
    rows = each_face.collect(each_face.client(scripted(paged([user(1)]))).users.list())
    service = scripted(paged([message(1), message(7, **ODD)], key="messages"))
    listing = each_face.client(service).messages.list(42)
    rows += each_face.collect(listing)
    one = chats(rows)[kind]
    probe = Probe()
    reach(one).update(probe=probe, itself=one)
    seen = weakref.ref(probe)
    del one, probe, rows
    assert seen() is not None
    assert_is_collected(seen, listing)


@pytest.mark.usefixtures("counted")
def test_a_cycle_through_a_dict_of_a_list_is_collected(each_face, scripted):
    service = scripted(paged([message(1), message(2)], key="messages"))
    listing = each_face.client(service).messages.list(42, as_dict=True)
    rows = each_face.call(listing.to_list)
    probe = Probe()
    rows[0]["sender"].update(probe=probe, message=rows[0])
    seen = weakref.ref(probe)
    del probe, rows
    assert seen() is not None
    assert_is_collected(seen, listing)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("as_dict", [True, False])
def test_the_garbage_collector_is_left_as_it_was(each_face, scripted, enabled, as_dict):
    (gc.enable if enabled else gc.disable)()
    try:
        rows = each_face.collect(
            each_face.client(scripted(paged(users(300)))).users.list(as_dict=as_dict)
        )
        assert len(rows) == 300
        broken = scripted(answer(200, envelope([user(1), 2])))
        page = each_face.client(broken).users.page
        with contextlib.suppress(DecodeError):
            each_face.call(page, as_dict=as_dict)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


@pytest.mark.parametrize("as_dict", [True, False])
def test_nesting_is_read_as_deep_as_json_may_go(face, scripted, as_dict):
    def body(depth: int) -> str:
        return '{"id": 42, "x": ' + "[" * depth + "]" * depth + "}"

    nested: Any = []
    for _ in range(125):
        nested = [nested]
    client = face.client(scripted(answer(200, body(126)), answer(200, body(128))))
    read = face.call(client.users.get, 42, as_dict=as_dict)
    assert (read if as_dict else read.extra)["x"] == nested
    with pytest.raises(DecodeError, match="too deep"):
        face.call(client.users.get, 42, as_dict=as_dict)


def test_a_key_that_libraries_have_for_themselves_is_a_key(face, scripted):
    odd = {"id": 42, "x": {"$serde_json::private::Number": "12"}}
    assert face.call(face.client(scripted(answer(200, odd))).users.get, 42, as_dict=True) == odd


def test_an_operator_who_wrote_much_is_held_once(face, scripted):
    """It is most of what a long list would hold."""
    rows = [message(number) for number in range(1, 100)]
    read = face.collect(face.client(scripted(paged(rows, key="messages"))).messages.list(42))
    assert isinstance(read[0].sender, OperatorSender)
    assert len({id(one.sender) for one in read}) == 1


@pytest.mark.parametrize("as_dict", [True, False])
def test_other_threads_wait_for_some_thousand_rows_at_most(scripted, as_dict):
    """However many there are: nobody else runs while items are made."""
    rows = [message(number) for number in range(900)]
    people = paged(users(64))

    def service(request: Any) -> bytes:
        whole = answer(200, envelope(rows, key="messages", limit=900))
        return whole if request.path.endswith("messages") else people(request)

    server = scripted(service)
    with server.client() as client:
        walk = client.messages.all(as_dict=as_dict)._begin()
        made = []
        while (items := walk.next_items(as_dict, True)) is not None:
            made.append(len(items))
            # Pages come in meanwhile, more than are taken at once.
            time.sleep(0.02)
    assert sum(made) == 64 * 900
    assert 900 < max(made) <= 2_048


def test_the_garbage_collector_is_on_while_python_code_makes_a_number(face, scripted, monkeypatch):
    seen = []

    def number(text: str) -> str:
        seen.append(gc.isenabled())
        return text

    monkeypatch.setattr("backread._files.json.SentNumber", number)
    sent = '{"users": [{"id": 1, "x": [1e999, 2e999]}], "total": 1, "limit": 99, "offset": 0}'
    [one] = face.collect(face.client(scripted(answer(200, sent))).users.list())
    assert one.extra["x"] == ["1e999", "2e999"]
    assert seen == [True, True]
