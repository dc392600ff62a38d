"""Models as values: compare, hash, copy, pickle, take apart, and how they look in a notebook."""

import copy
import dataclasses
import pickle
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from backread import models
from backread.models import (
    Attempt,
    Message,
    OperatorSender,
    OtherSender,
    Page,
    User,
    UserAttribute,
    UserSender,
    WalkReport,
)

MOMENT = datetime(2024, 3, 5, 9, 31, 7, 42000, tzinfo=UTC)


def user(identifier: int = 42, **changes: Any) -> User:
    made = User(
        identifier,
        "Ada <b>Byron</b>",
        "ada@example.com",
        None,
        MOMENT,
        MOMENT,
        None,
        "https://example.com/?a=1&b=2",
        (UserAttribute("plan", "pro"), UserAttribute("seats", None, {"unit": "people"})),
        {"vip": True, "tags": ["a", "b"]},
    )
    return dataclasses.replace(made, **changes)


def message(sender: Any) -> Message:
    return Message(7, "Hello 👋", True, None, MOMENT, None, False, "operator", sender, 42, {"x": 1})


OPERATOR = OperatorSender(3, "Grace", "Hopper", "grace@example.com", None, {"team": "blue"})

REPORT = WalkReport(
    6, 5, 450, 448, 2, 448, 450, 1, 3, "counted", MOMENT, MOMENT, None, {"snapshot": 4}, (9, 11)
)

EVERYTHING = [
    user(),
    message(UserSender(42, "Ada", None)),
    message(OPERATOR),
    message(OtherSender("bot", None, {"name": "Robby"})),
    message(None),
    Page(99, 0, 2, (user(1), user(2))),
    Page(None, None, None, ()),
    REPORT,
    Attempt(503, None, 0.25, 1.5),
]

each = pytest.mark.parametrize("value", EVERYTHING, ids=lambda value: type(value).__name__)


@each
@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        *(
            lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
            for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
        ),
    ],
)
def test_a_copy_is_equal_and_hashes_alike(value, duplicate):
    twin = duplicate(value)
    assert twin == value
    assert hash(twin) == hash(value)
    assert type(twin) is type(value)
    assert repr(twin) == repr(value)


@each
def test_nothing_can_be_assigned(value):
    for name in (dataclasses.fields(value)[0].name, "a_new_name"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=name):
            setattr(value, name, 1)
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (UserAttribute, "name value extra"),
        (
            User,
            (
                "id name email reference created_at updated_at online_at last_url user_attributes "
                "extra"
            ),
        ),
        (UserSender, "id name email extra"),
        (OperatorSender, "id forename surname email picture_thumb_url extra"),
        (OtherSender, "sender_type id extra"),
        (
            Message,
            (
                "id body read_by_user read_by_operator created_at file_url auto_invitation "
                "sender_type sender user_id extra"
            ),
        ),
        (Page, "limit offset total items resource"),
        (
            WalkReport,
            (
                "requests pages rows distinct repeats total_first total_last sweeps repaired_text "
                "certificate started_at ended_at reason lists_by_certificate uncertified_users "
                "links missing_links inversions rows_gone rows_moved rows_short proving_requests "
                "rows_found_by_id outage_seconds odd_values unread_users "
                "unreadable_rows"
            ),
        ),
        (Attempt, "status error seconds_taken seconds_waited"),
    ],
)
def test_the_order_of_positional_arguments_stays(kind, names):
    assert [column.name for column in dataclasses.fields(kind)] == names.split()


def test_users_that_differ_in_what_the_interface_does_not_name_differ():
    assert user() != user(extra={})
    assert {user(): "known"}[user()] == "known"


def test_asdict_goes_all_the_way_down():
    taken_apart = dataclasses.asdict(user())
    assert taken_apart["user_attributes"] == (
        {"name": "plan", "value": "pro", "extra": {}},
        {"name": "seats", "value": None, "extra": {"unit": "people"}},
    )
    assert taken_apart["extra"] == {"vip": True, "tags": ["a", "b"]}
    assert dataclasses.asdict(message(OPERATOR))["sender"]["forename"] == "Grace"


def test_extra_is_not_shared_between_models():
    assert OtherSender("bot", 1).extra is not OtherSender("bot", 1).extra


def test_a_sender_can_be_matched_on():
    match message(OPERATOR):
        case Message(sender=OperatorSender(forename=str() as forename)):
            assert forename == "Grace"
        case other:
            pytest.fail(f"no match: {other}")


def test_a_page_is_read_like_a_sequence():
    page = Page(99, 0, 2, (user(1), user(2)))
    assert [item.id for item in page] == [1, 2]
    assert len(page) == 2
    assert page[0] == user(1)
    assert page[-1:] == (user(2),)
    assert user(2) in page
    assert page
    assert not Page(99, 198, 2, ())


def test_a_page_can_be_made_with_the_type_of_its_items():
    assert Page[int](2, 0, 2, (5, 6)) == Page(2, 0, 2, (5, 6))


@pytest.mark.parametrize(
    "value", [user(), message(OPERATOR), message(None), Page(9, 0, 1, (user(),)), REPORT]
)
def test_html_for_a_notebook_is_a_table(value):
    html = value._repr_html_()
    assert html.startswith('<div class="backread mathjax_ignore tex2jax_ignore"><style>')
    assert html.count("<table") == html.count("</table>") >= 1
    assert html.endswith("</div>")


def test_every_public_name_has_a_docstring():
    for name in models.__all__:
        if isinstance(getattr(models, name), type):
            # dataclass() writes one of its own, the signature, where there is none.
            assert not getattr(models, name).__doc__.startswith(f"{name}(")


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        (OPERATOR, "Grace Hopper"),
        (dataclasses.replace(OPERATOR, surname=None), "Grace"),
        (dataclasses.replace(OPERATOR, forename="", surname=" "), None),
        (UserSender(42, "Ada", None), "Ada"),
        (UserSender(42, None, "ada@example.com"), None),
        (UserSender(42, None, None, {"name": 7}), None),
        (OtherSender("bot", None, {"name": "Robby"}), "Robby"),
        (None, None),
    ],
)
def test_sender_name_is_what_the_sender_is_called(sender, name):
    assert message(sender).sender_name == name


def test_attributes_are_a_dict_in_which_the_last_of_a_name_wins():
    given = (("plan", "pro"), ("seats", None), ("plan", "free"), (None, "nameless"))
    made = user(user_attributes=tuple(UserAttribute(*each) for each in given))
    assert made.attributes == {"plan": "free", "seats": None}
    assert made.attributes["plan"] == "free"
    assert user(user_attributes=None).attributes == {}
    made.attributes["plan"] = "changed"
    assert made.attributes["plan"] == "free"


def test_properties_are_no_fields():
    assert "attributes" not in dataclasses.asdict(user())
    assert "sender_name" not in dataclasses.asdict(message(OPERATOR))
    assert "sender_name" not in repr(message(OPERATOR))


def test_a_page_of_messages_shows_who_wrote_when_before_the_body():
    sent = {"id": 9, "body": "Hi", "sender": {"id": 3, "forename": "Grace", "surname": "Hopper"}}
    for items in ((message(OPERATOR),), (sent,)):
        html = Page(99, 0, 1, items)._repr_html_()
        columns = re.findall(r'<th scope="col">(\w+)</th>', html)
        assert columns.index("sender") < columns.index("body")
        assert ">Grace Hopper</td>" in html
    assert columns[:2] == ["id", "sender"]


def test_nothing_can_be_deleted():
    for name in ("id", "unknown"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot delete '{name}'"):
            delattr(user(), name)


def test_a_subclass_may_narrow_a_field_whatever_was_read_before(backread_client):
    backread_client.users.get(backread_client.users.page(limit=1)[0].id)

    @dataclasses.dataclass(frozen=True, slots=True)
    class OperatorMessage(Message):
        sender: OperatorSender

    names = [each.name for each in dataclasses.fields(OperatorMessage)]
    assert names == [each.name for each in dataclasses.fields(Message)]
    by_name = {each.name: each for each in dataclasses.fields(OperatorMessage)}
    assert by_name["sender"].default is dataclasses.MISSING
