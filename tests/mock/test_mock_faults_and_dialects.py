"""Faults and dialects, as values and as the client meets them."""

import pickle
from dataclasses import fields
from typing import Any

import pytest

import backread
from backread.testing import Dialect, Fault, Lane

# --- the value ------------------------------------------------------------------------------------


FAULTS = [
    (Fault.status(429), "status(429)"),
    (Fault.status(429, retry_after=30), "status(429, retry_after=30)"),
    (Fault.status(500, body='a "b"\n\\'), 'status(500, body="a \\"b\\"\\n\\\\")'),
    (Fault.latency(250), "latency(250)"),
    (Fault.latency(0.5), "latency(0.5)"),
    (Fault.latency_lognormal(200, 0.5), "latency(lognormal(200, 0.5))"),
    (Fault.reset(), "reset()"),
    (Fault.reset(after_bytes=7), "reset(after_bytes=7)"),
    (Fault.truncate(100), "truncate(at=100, length=declared)"),
    (Fault.truncate(at=0, length="honest"), "truncate(at=0, length=honest)"),
    (Fault.drip(bytes=10, ms=50), "drip(bytes=10, ms=50)"),
    (Fault.stall(), "stall()"),
    (Fault.stall(after_bytes=0), "stall(after_bytes=0)"),
    (Fault.garbage(), "garbage()"),
    (Fault.garbage("<html>ä</html>"), 'garbage("<html>ä</html>")'),
    (Fault.wrong_content_type(), 'wrong_content_type("text/html")'),
    (Fault.stale_keepalive(), "stale_keepalive()"),
]


@pytest.mark.parametrize(("fault", "text"), FAULTS, ids=[text for _, text in FAULTS])
def test_a_fault_is_its_text(backread_mock, fault, text):
    assert str(fault) == text
    assert eval(repr(fault)) == fault
    assert Fault(text) == fault
    assert hash(Fault(text)) == hash(fault)
    assert pickle.loads(pickle.dumps(fault)) == fault
    backread_mock.on("users").fail(fault, times=2)
    backread_mock.on("users").fail(fault, times=2, each=True)
    backread_mock.on("users").fail(text)
    assert backread_mock.faults == (
        f"users: {text} x2",
        f"users: {text} x2 each",
        f"users: {text}",
    )
    backread_mock.clear_faults()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "status(42)",
            r'^fault "status\(42\)": code must be from 200 to 599, not "42"',
        ),
        ("broken()", 'unknown fault "broken"; there are status'),
        ("status(503) x2", 'expected the end after the fault, not "x2"'),
    ],
)
def test_a_text_that_is_no_fault_is_a_value_error(backread_mock, text, problem):
    with pytest.raises(ValueError, match=problem):
        Fault(text)
    with pytest.raises(ValueError, match=problem):
        backread_mock.on("any").fail(text)
    assert backread_mock.faults == ()


@pytest.mark.parametrize(
    ("make", "error", "problem"),
    [
        (lambda: Fault.status(429, retry_after="soon"), ValueError, "retry_after must be a whole"),
        (
            lambda: Fault.truncate(3, length="false"),
            ValueError,
            "length must be declared or honest",
        ),
        (lambda: Fault(503), TypeError, "a Fault is made from its text, not from int"),
        (lambda: Fault.wrong_content_type("text/ä"), ValueError, "printable ASCII"),
        (lambda: Fault.garbage(5), TypeError, "text must be a str, as it is sent, not int"),
    ],
)
def test_arguments_are_checked_where_they_are_given(backread_mock, make, error, problem):
    with pytest.raises(error, match=problem):
        make()
    with pytest.raises(ValueError, match="each=True needs times="):
        backread_mock.on("users").fail(Fault.status(503), each=True)


# --- what the client makes of each ----------------------------------------------------------------

RETRIES = 2


def read_page(face: Any, lane: Lane, **options: Any) -> Any:
    options = {"max_retries": RETRIES, "timeout": 30} | options
    return face.call(face.client(lane, **options).users.page)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("status(503, retry_after=7)", backread.ServerError),
        ("reset()", backread.TransportError),
        ("reset(after_bytes=5000)", backread.TransportError),
        ("truncate(at=5000)", backread.TruncatedBodyError),
        ("truncate(at=5000, length=honest)", backread.DecodeError),
        ("stall()", backread.RequestTimeoutError),
        ("latency(31000)", backread.RequestTimeoutError),
        ("drip(bytes=100, ms=1000)", backread.RequestTimeoutError),
        ("garbage()", backread.DecodeError),
    ],
)
def test_what_may_pass_is_tried_again(face, backread_mock, fault, error):
    m = backread_mock
    m.clock.virtual()
    m.on("users").fail(fault)
    with pytest.raises(error) as caught:
        read_page(face, m)
    # A request whose connection closes before the answer begins is sent again at once.
    resent = 1 if fault == "reset()" else 0
    assert len(caught.value.attempts) == m.calls("users").count == 1 + resent + RETRIES
    assert len(m.clock.slept) == RETRIES
    assert {entry.faults for entry in m.journal} == {(f"users: {Fault(fault)}",)}

    m.clear_faults()
    m.forget()
    m.on("users").fail(fault, times=RETRIES)
    assert [user.id for user in read_page(face, m)] == m.world.user_ids()[:99]
    assert m.calls("users").count == 1 + RETRIES


# --- dialects -------------------------------------------------------------------------------------


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
