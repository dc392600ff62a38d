"""The dialects from Python: each switch, as a client sees it."""

import pickle
from dataclasses import fields
from typing import Any

import pytest

from backread.testing import Dialect

FIRST = {
    "strict": False,
    "over_limit": "clamp",
    "max_limit": 40,
    "default_limit": 7,
    "order": "newest",
    "total": "low",
    "total_cap": 150,
    "past_end": "not_found",
    "nulls": "both",
    "sender_type": "others",
    "extra_fields": True,
    "ids": "large",
    "short_pages": True,
    "hints": "never",
    "files": "own",
}
"""For each switch a value that the documented dialect does not have."""


# --- the value ------------------------------------------------------------------------------------


def test_a_dialect_is_a_bundle_and_what_differs():
    dialect = Dialect("hostile", order="newest", strict=False)
    assert (dialect.order, dialect.strict, dialect.max_limit) == ("newest", False, 50)
    assert str(dialect) == "hostile strict=no order=newest"
    assert repr(dialect) == "Dialect('hostile strict=no order=newest')"
    assert Dialect(str(dialect)) == dialect
    assert pickle.loads(pickle.dumps(dialect)) == dialect
    assert len({dialect, Dialect(str(dialect)), Dialect.hostile()}) == 2
    assert Dialect() == Dialect.documented() == Dialect("documented")
    assert Dialect.lenient().with_(strict=True) == Dialect("lenient strict=yes")


@pytest.mark.parametrize("name", [each.name for each in fields(Dialect)])
def test_each_switch_is_an_attribute(name):
    changed = Dialect.documented().with_(**{name: FIRST[name]})
    assert getattr(changed, name) == FIRST[name] != getattr(Dialect.documented(), name)
    assert type(getattr(changed, name)) is type(FIRST[name])
    assert str(changed).startswith(f"documented {name}=")
    assert Dialect(str(changed)) == changed


@pytest.mark.parametrize(
    ("switches", "error", "problem"),
    [
        (
            {"speed": "9"},
            TypeError,
            r"Dialect\(\) has no option speed; it has default_limit, extra_fields",
        ),
        ({"order": "random"}, ValueError, "order: .*id, newest, ties, shuffled"),
        ({"order": "id total=null"}, ValueError, "order: 'id total=null' is not one word"),
        ({"max_limit": 100}, ValueError, "max_limit: must be a whole number from 1 to 99"),
        ({"text": None}, TypeError, "text: a bundle such as 'hostile', .*, not None"),
        ({"strict": "yes"}, TypeError, "strict must be True or False, not 'yes'"),
    ],
)
def test_dialect_names_known_switches_for_an_unknown_one(switches, error, problem):
    with pytest.raises(error, match=problem):
        Dialect(**switches)


# --- what the client makes of them ----------------------------------------------------------------


def test_a_limit_that_only_the_dialect_minds_is_no_slip_of_the_client(backread_mock, by_hand):
    backread_mock.dialect = "documented max_limit=50"
    assert by_hand(backread_mock)("/external/users?limit=99").status == 422
    assert backread_mock.unexpected == ()


def test_hints_follow_a_change_of_messages_lag_or_stay(backread_mock):
    backread_mock.clock.virtual()
    world = backread_mock.world
    [user_id] = [each for each in world.user_ids() if len(world.message_ids(each)) > 3][:1]

    def hints() -> Any:
        user = backread_mock.client().users.get(user_id)
        return user.updated_at, user.online_at

    first, *_ = world.message_ids(user_id)
    for word, at_once, later in (
        ("never", False, False),
        ("lag", False, True),
        ("follow", True, True),
    ):
        backread_mock.dialect = backread_mock.dialect.with_(hints=word)
        for change in (
            lambda: world.add_messages(user_id, 1),
            lambda word=word: world.edit_message(user_id, first, body=word),
        ):
            before = hints()
            change()
            assert (hints() != before) == at_once, word
            backread_mock.clock.advance(301)
            assert (hints() != before) == later, word
