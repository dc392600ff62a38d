"""Rows that were read, as objects: equal to those that their classes make, and as free to use."""

import contextlib
import copy
import dataclasses
import gc
import json
import pickle
import sys
import threading
import weakref
from typing import Any

import pytest

from backread import DecodeError
from helpers import expected_rows
from helpers.api_rows import message, paged, user
from helpers.scripted_server import answer
from helpers.waiting import eventually

ODD = {"vip": True, "tags": ["a", {"b": None}], "score": 1.5, "large": 2**70, "é😀": "\n"}
USERS = [user(1), {"id": 2}, user(3, user_attributes=[{"name": "n", "unit": "people"}], **ODD)]
MESSAGES = [
    message(1),
    {"id": 2},
    message(3, sender_type="user", sender={"id": 42, "name": "Ada", "email": None}),
    message(4, sender_type="user", sender={"id": 42, **ODD}),
    message(5, sender={"id": 3, "team": ["blue"]}, **ODD),
    message(6, sender_type="bot", sender={"id": 9, "name": "Robby"}),
]


def made(rows: list[Any], key: str) -> list[Any]:
    """The rows as their classes make them (see helpers/expected_rows.py)."""
    return [row.model for row in expected_rows.rows(json.dumps({key: rows}).encode(), key)]


@pytest.fixture
def read(face: Any, scripted: Any) -> list[Any]:
    """All rows, as a client reads them."""
    listed = face.client(scripted(paged(USERS))).users.list()
    sent = face.client(scripted(paged(MESSAGES, key="messages"))).messages.list(42)
    return [*face.collect(listed), *face.collect(sent), listed.report, *face.pages(sent)]


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        dataclasses.replace,
        *(
            lambda one, protocol=protocol: pickle.loads(pickle.dumps(one, protocol))
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_read_models_and_their_copies_are_as_their_classes_make_them(read, duplicate):
    by_hand = [*made(USERS, "users"), *made(MESSAGES, "messages"), *read[9:]]
    for same in (read, list(map(duplicate, read))):
        assert same == by_hand
        for seen in (hash, repr, type, dataclasses.asdict):
            assert list(map(seen, same)) == list(map(seen, by_hand))


def test_read_models_are_frozen_and_slotted(read):
    for one in read:
        assert not hasattr(one, "__dict__")
        for name in (*(field.name for field in dataclasses.fields(one)), "a_new_name"):
            with pytest.raises(dataclasses.FrozenInstanceError, match=name):
                setattr(one, name, None)
            with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete '{name}'"):
                delattr(one, name)


def test_rows_share_nothing_that_a_caller_may_change(face, scripted):
    sender = {"id": 7, "name": "Ada", "email": None}
    rows = [message(at, sender_type="user", sender=sender) for at in range(1, 30)]
    for row in rows[20:]:
        row["sender"] = {**sender, "vip": True}
    client = face.client(scripted(paged(rows, key="messages")))
    models = face.collect(client.messages.list(42))
    extras = [each for row in models for each in (row.extra, row.sender.extra)]
    # Senders of documented fields alone are one object: they are most of what a list would hold.
    assert len({id(row.sender) for row in models[:20]}) == 1
    assert len(set(map(id, extras))) == 29 + 1 + 9
    dicts = face.collect(client.messages.list(42, as_dict=True))
    assert len({id(each) for row in dicts for each in (row, row["sender"])}) == 58
    # Documented names are those of literals in a caller's code; others are not kept for good.
    interned = {name: name is sys.intern("".join(name)) for name in dicts[20]["sender"]}
    assert interned == {"id": True, "name": True, "email": True, "vip": False}


def test_cycles_through_rows_are_collected(each_face, scripted):
    listing = each_face.client(scripted(paged(USERS))).users.list()
    people = each_face.collect(listing)
    sent = each_face.client(scripted(paged(MESSAGES, key="messages"))).messages
    chats = each_face.collect(sent.list(42))
    dicts = each_face.collect(sent.list(42, as_dict=True))
    probe = threading.Event()
    for held in (
        *(each.extra for each in (*people, *chats)),
        *(each.sender.extra for each in chats if each.sender is not None),
        people[0].user_attributes[0].extra,
        dicts[0]["sender"],
    ):
        held.update(probe=probe, rows=(people, chats, dicts))
    seen = weakref.ref(probe)
    del probe, people, chats, dicts, held

    def check() -> None:
        # What an await has given may be let go of at the next look at anything native.
        assert listing.report.rows == len(USERS)
        gc.collect()
        assert seen() is None

    eventually(check)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("as_dict", [True, False])
def test_the_garbage_collector_is_left_as_it_was(face, scripted, enabled, as_dict):
    client = face.client(scripted(lambda request: answer(200, {"users": [USERS[0], 2]})))
    (gc.enable if enabled else gc.disable)()
    try:
        assert face.collect(client.users.list(as_dict=as_dict))[0]
        with contextlib.suppress(DecodeError):
            face.call(client.users.page, as_dict=as_dict)
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
