"""The classes of models and typed dicts: their fields, and how they behave as values."""

import copy
import re
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, get_type_hints

import pytest

from backread import models, typed_dicts
from backread._client.columns import COLUMNS
from backread._files.json import SentNumber
from backread.models import Message, OperatorSender, OtherSender, Page, User, UserAttribute
from helpers.arrow_consumers import KINDS

MOMENT = datetime(2024, 3, 5, 9, 31, 7, 42000, tzinfo=UTC)
ATTRIBUTES = (UserAttribute("plan", "pro"), UserAttribute("seats", None, {"unit": "people"}))
USER = User(42, *[None] * 3, MOMENT, *[None] * 3, ATTRIBUTES, {"vip": True, "tags": ["a", "b"]})
OPERATOR = OperatorSender(3, "Grace", "Hopper", "grace@example.com", None, {"team": "blue"})


def message(sender: Any) -> Message:
    return Message(7, "Hello 👋", True, None, MOMENT, None, False, "operator", sender, 42, {"x": 1})


ORDER = """
    User: id name email reference created_at updated_at online_at last_url user_attributes extra
    UserAttribute: name value extra
    Message: id body read_by_user read_by_operator created_at file_url auto_invitation sender_type
        sender user_id extra
    UserSender: id name email extra
    OperatorSender: id forename surname email picture_thumb_url extra
    OtherSender: sender_type id extra
    Page: limit offset total items resource
    WalkReport: requests pages rows distinct repeats total_first total_last sweeps repaired_text
        certificate started_at ended_at reason lists_by_certificate uncertified_users evidence
        outage_seconds odd_values unread_users unreadable_rows
    Attempt: status error seconds_taken seconds_waited
"""


@pytest.mark.parametrize(("kind", "names"), re.findall(r"(\w+): ([a-z_\s]+)(?=\n)", ORDER))
def test_the_order_of_positional_arguments_and_patterns_stays(kind, names):
    assert getattr(models, kind).__match_args__ == tuple(names.split())


AS_SENT: dict[Any, Any] = {
    datetime | None: str | None,
    tuple[UserAttribute, ...] | None: list[typed_dicts.UserAttributeDict] | None,
    models.Sender | None: typed_dicts.UserSenderDict | typed_dicts.OperatorSenderDict | None,
}


@pytest.mark.parametrize(
    "record", [User, UserAttribute, Message, models.UserSender, OperatorSender]
)
def test_typed_dict_has_the_fields_of_its_dataclass(record):
    shape = getattr(typed_dicts, f"{record.__name__}Dict")
    # The others are not part of the response.
    sent = [field for field in fields(record) if field.name not in ("extra", "user_id")]
    assert get_type_hints(shape) == {
        field.name: AS_SENT.get(field.type, field.type) for field in sent
    }
    assert shape.__required_keys__ == {field.name for field in sent} & {"id"}


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_columns_of_other_packages_are_those_of_the_arrow_stream(resource):
    kinds = {"int": "whole", "bool": "truth", "datetime": "moment", "tuple": "attributes"}
    of_stream = {name: kind.replace("choice", "text") for name, kind in KINDS[resource].items()}
    columns = COLUMNS[resource]
    assert {each.name: kinds.get(each.kind, "text") for each in columns} == of_stream
    assert [each.name for each in columns if not each.nullable] == [
        name for name in of_stream if name in ("user_id", "id")
    ]


def test_extra_is_part_of_the_value_and_not_shared():
    assert replace(USER, extra={}) != USER
    assert {USER: "known"}[copy.deepcopy(USER)] == "known"
    assert OtherSender("bot", 1).extra is not OtherSender("bot", 1).extra


@pytest.mark.parametrize(
    "record",
    [
        USER,
        *map(message, (OPERATOR, models.UserSender(42, "Ada", None), OtherSender(None, 1), None)),
        Page(99, 0, 1, (message(OPERATOR),), "messages"),
        Page(99, 0, 1, ({"id": 1, "created_at": "2024"},), "users"),
        models.Attempt(503, None, 0.25, 0.0),
    ],
)
def test_json_gives_the_same_model_back(record):
    assert type(record).from_dict(record.to_dict()) == record
    assert type(record).from_json(record.to_json()) == record


def test_to_dict_has_json_values():
    sent = replace(USER, extra={"large": SentNumber("1e400")}).to_dict()
    assert sent["created_at"] == "2024-03-05T09:31:07.042000+00:00"
    assert sent["user_attributes"][1]["extra"] == {"unit": "people"}
    assert sent["extra"] == {"large": "1e400"}
    with pytest.raises(ValueError, match=r"not a User: \$.id has the wrong type, str"):
        User.from_dict({**sent, "id": "42"})


def test_reprs_fit_on_a_line():
    user = replace(USER, name="Ada", email="ada@example.com")
    assert repr(user) == "User(id=42, name='Ada', email='ada@example.com')"
    assert (
        repr(message(OPERATOR)) == "Message(id=7, created_at=2024-03-05T09:31:07Z, body='Hello 👋')"
    )
    assert repr(Page(99, 0, 1, (user,))) == "Page(limit=99, offset=0, total=1, items=<1 item>)"
    assert len(repr(replace(user, name="Ada\n" * 1_000))) == 100
    assert len(repr(replace(message(OPERATOR), body="Hello " * 1_000))) == 100


def test_a_page_is_read_like_a_sequence():
    page = Page(99, 0, 2, (USER, OPERATOR))
    assert list(page) == [USER, OPERATOR]
    assert (len(page), page[0], page[-1:]) == (2, USER, (OPERATOR,))
    assert OPERATOR in page
    assert page
    assert not Page(99, 198, 2, ())
    assert Page[int](2, 0, 2, (5, 6)) == Page(2, 0, 2, (5, 6))


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        (OPERATOR, "Grace Hopper"),
        (replace(OPERATOR, surname=None), "Grace"),
        (replace(OPERATOR, forename="", surname=" "), None),
        (models.UserSender(42, None, "ada@example.com", {"name": 7}), None),
        (OtherSender("bot", None, {"name": "Robby"}), "Robby"),
        (None, None),
    ],
)
def test_sender_name_is_what_the_sender_is_called(sender, name):
    assert message(sender).sender_name == name


def test_attributes_are_a_dict_in_which_the_last_of_a_name_wins():
    given = (("plan", "pro"), ("seats", None), ("plan", "free"), (None, "nameless"))
    made = replace(USER, user_attributes=tuple(UserAttribute(*each) for each in given))
    made.attributes["plan"] = "changed"
    assert made.attributes == {"plan": "free", "seats": None}
    assert replace(USER, user_attributes=None).attributes == {}
