"""Every dialect of the mock through dataclasses, dicts and Arrow: the same rows, field by field."""

import json
import random
from functools import partial
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import reference
from backread.testing import Dialect

SWITCHES = {
    "strict": [True, False],
    "over_limit": ["refuse", "clamp", "ignore"],
    "max_limit": [10, 50, 99],
    "order": ["id", "newest", "ties", "shuffled"],
    "total": ["exact", "stale", "capped", "null", "low", "high"],
    "past_end": ["empty", "not_found", "last_page"],
    "nulls": ["documented", "null", "missing", "both"],
    "sender_type": ["documented", "others"],
    "extra_fields": [False, True],
    "ids": ["integer", "large"],
    "short_pages": [False, True],
}


def drawn(seed: int) -> str:
    """A mixture of switches, its rows as odd as they come."""
    chance = random.Random(seed)
    switches = {name: chance.choice(values) for name, values in SWITCHES.items()}
    odd = {"nulls": "both", "sender_type": "others", "extra_fields": True}
    return str(Dialect("documented", **{**switches, **odd}))


DIALECTS = [
    "documented",
    "lenient",
    "hostile",
    *(str(Dialect(**{name: value})) for name, values in SWITCHES.items() for value in values),
    *map(drawn, range(8)),
]


def by_id(rows: list[Any]) -> dict[Any, Any]:
    held = {row["id"] if isinstance(row, dict) else row.id: row for row in rows}
    assert len(held) == len(rows)
    return held


def read_all(face: Any, listing: Any) -> dict[Any, Any]:
    return by_id(face.collect(listing))


def table_of(face: Any, listing: Any) -> dict[Any, Any]:
    return by_id([reference.loaded(row) for row in face.call(listing.to_arrow).to_pylist()])


def compare(key: str, models: Any, dicts: Any, table: Any) -> None:
    """Each row of the one in the others; what a dict holds, read by hand, says what it must be."""
    for identifier in models.keys() & dicts.keys() & table.keys():
        row, model, sent = table[identifier], models[identifier], dicts[identifier]
        pairs = reference.parse(json.dumps(sent).encode())
        expected = reference.row(pairs, key, row.get("user_id", 0))
        assert model == expected.model
        assert repr(model) == repr(expected.model)
        assert row == reference.columns(model)


@pytest.mark.backread(world={"seed": 11, "users": 60, "messages_per_user": (0, 9)})
@pytest.mark.parametrize("dialect", dict.fromkeys(DIALECTS))
def test_rows_of_a_dialect_are_the_same_through_every_face(face, backread_mock, by_hand, dialect):
    backread_mock.dialect = dialect
    caller, client = by_hand(backread_mock), face.client(backread_mock)
    size = backread_mock.dialect.max_limit
    everyone = face.collect(client.users.list(page_size=size, as_dict=True))
    for key, listing, path in (
        ("users", client.users.list, "/external/users/{id}"),
        (
            "messages",
            partial(client.messages.all, users=[each["id"] for each in everyone]),
            "/external/users/{user_id}/messages/{id}",
        ),
    ):
        listings = [listing(page_size=size, as_dict=as_dict) for as_dict in (False, True, False)]
        models, dicts = (read_all(face, each) for each in listings[:2])
        table = table_of(face, listings[2])
        if all(each.report.certificate != "uncertified" for each in listings):
            assert models.keys() == dicts.keys() == table.keys()
        assert len(models.keys() & dicts.keys() & table.keys()) > 50
        compare(key, models, dicts, table)
        for identifier in [*table][::25]:
            body = caller(path.format(**table[identifier])).body
            user_id = table[identifier].get("user_id", 0)
            alone = reference.row(reference.parse(body), key, user_id)
            assert repr(alone.sent) == repr(dicts.get(identifier, alone.sent))
            assert repr(alone.model) == repr(models.get(identifier, alone.model))


@pytest.mark.backread(dialect="ids=text")
@pytest.mark.parametrize("name", ["users", "messages"])
def test_rows_without_a_usable_id_are_left_out_alike(face, backread_mock, name):
    client = face.client(backread_mock)
    listing = client.users.list() if name == "users" else client.messages.list(42)
    for read in (lambda: face.collect(listing), lambda: face.call(listing.to_arrow).to_pylist()):
        assert read() == []
        assert "the row at offset 0 has no integer id" in listing.report.reason
