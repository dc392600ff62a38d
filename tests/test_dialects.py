"""The dialects from Python: each switch, as a client sees it."""

import pickle
from dataclasses import fields
from typing import Any

import pytest

import backread
from backread.testing import Dialect, Lane
from by_hand import Answer

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
}
"""For each switch a value that the documented dialect does not have."""


# --- the value -----------------------------------------------------------------------------------


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


def test_a_dialect_is_frozen():
    with pytest.raises(AttributeError):
        Dialect().order = "ties"  # type: ignore[misc]


def test_whether_answers_stay_within_the_interface():
    assert Dialect.documented().conforms
    assert Dialect.lenient().conforms
    assert not Dialect.hostile().conforms
    assert not Dialect(ids="text").conforms


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
def test_what_there_is_not_is_named_with_what_there_is(switches, error, problem):
    with pytest.raises(error, match=problem):
        Dialect(**switches)


# --- what each switch does -----------------------------------------------------------------------


@pytest.fixture
def ask(backread_mock: Lane, by_hand: Any) -> Any:
    """Asks for a target in a dialect."""
    caller = by_hand(backread_mock)

    def send(dialect: str, target: str, **changed: str | None) -> Answer:
        backread_mock.dialect = dialect
        return caller(target, **changed)

    return send


LIST = "/external/users"


@pytest.mark.backread(unexpected="allow")
def test_strict(ask):
    assert ask("strict=yes", LIST, Accept="*/*").status == 406
    assert ask("strict=no", LIST, Accept="*/*").status == 200
    assert ask("strict=yes", f"{LIST}?page=2").status == 422
    assert ask("strict=no", f"{LIST}?page=2").status == 200


@pytest.mark.backread(unexpected="allow")
def test_limits(ask):
    assert ask("over_limit=refuse", f"{LIST}?limit=500").status == 422
    assert ask("over_limit=clamp", f"{LIST}?limit=500").json["limit"] == 99
    assert ask("over_limit=clamp max_limit=40", f"{LIST}?limit=500").json["limit"] == 40
    assert ask("over_limit=ignore default_limit=8", f"{LIST}?limit=500").json["limit"] == 8
    assert ask("default_limit=8", LIST).json["limit"] == 8


def test_order(ask, backread_mock):
    def ids(dialect: str) -> list[int]:
        return [user["id"] for user in ask(dialect, f"{LIST}?limit=99").json["users"]]

    every = backread_mock.world.user_ids()
    assert ids("order=id") == every[:99]
    assert ids("order=newest") == every[:-100:-1]
    ties = ids("order=ties")
    assert set(ties[:96]) == set(every[:96])
    assert ties[:96] != every[:96]
    assert ids("order=ties") != ties
    shuffled = ids("order=shuffled")
    assert not set(shuffled) <= set(every[:120])
    assert ids("order=shuffled") != shuffled


def test_total(ask, backread_mock):
    def total(dialect: str) -> Any:
        return ask(dialect, f"{LIST}?limit=1").json["total"]

    backread_mock.world.add_users(3)
    assert total("total=exact") == 203
    assert total("total=stale") == 200
    assert total("total=capped total_cap=150") == 150
    assert total("total=null") is None
    assert total("total=low") < 203 < total("total=high")


def test_past_end(ask):
    target = f"{LIST}?offset=500&limit=50"
    assert ask("past_end=empty", target).json["users"] == []
    assert ask("past_end=not_found", target).status == 404
    last = ask("past_end=last_page", target).json
    assert (last["offset"], len(last["users"])) == (150, 50)


def test_fields(ask):
    def users(dialect: str) -> list[dict[str, Any]]:
        return ask(dialect, f"{LIST}?limit=99").json["users"]

    usual = users("documented")
    known = usual[0].keys()
    assert all(user.keys() == known and None not in user.values() for user in usual)
    assert any(None in user.values() for user in users("nulls=null"))
    assert any(user.keys() < known for user in users("nulls=missing"))
    assert all("id" in user for user in users("nulls=both"))
    assert all(user.keys() > known for user in users("extra_fields=some"))
    assert all(user["id"] > 2**62 for user in users("ids=large"))
    assert all(isinstance(user["id"], str) for user in users("ids=text"))


def test_senders(ask, backread_mock):
    longest = max(
        backread_mock.world.user_ids(), key=lambda each: len(backread_mock.world.message_ids(each))
    )

    def kinds(dialect: str) -> set[str]:
        messages = ask(dialect, f"{LIST}/{longest}/messages?limit=99").json["messages"]
        return {message["sender_type"] for message in messages}

    assert kinds("documented") == {"user", "operator"}
    assert kinds("sender_type=others") > {"user", "operator"}


def test_short_pages(ask):
    lengths = {
        len(ask("short_pages=some", f"{LIST}?offset={offset}&limit=20").json["users"])
        for offset in range(20)
    }
    assert max(lengths) == 20
    assert 0 < min(lengths) < 20


# --- what the client makes of them ---------------------------------------------------------------


@pytest.mark.parametrize(
    "dialect",
    [
        "documented",
        "lenient",
        "hostile",
        "hostile order=id",
        "order=newest short_pages=some",
        "total=null",
        "total=low",
        "total=high",
        "total=capped total_cap=150",
        "past_end=not_found",
        "past_end=last_page",
        "ids=large",
        "max_limit=10 over_limit=clamp",
    ],
)
def test_the_client_reads_every_row(face, backread_mock, dialect):
    backread_mock.dialect = dialect
    users = face.collect(face.client(backread_mock).users.list())
    audit = backread_mock.audit(user.id for user in users)
    assert audit.ok
    assert audit.expected == 200


def test_ids_that_are_text_are_a_decode_error(face, backread_mock):
    backread_mock.dialect = Dialect(ids="text")
    with pytest.raises(backread.DecodeError, match="id"):
        face.call(face.client(backread_mock, max_retries=0).users.page)


def test_a_limit_that_only_the_dialect_minds_is_no_slip_of_the_client(ask, backread_mock):
    assert ask("documented max_limit=50", "/external/users?limit=99").status == 422
    assert backread_mock.unexpected == ()
