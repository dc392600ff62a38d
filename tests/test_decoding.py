"""Odd answers that are tolerated, and how they look."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from backread.models import Message, OperatorSender, OtherSender, User, UserAttribute, UserSender
from canned import envelope, message, user
from readers import get_message, get_user, list_users
from scripted_server import answer

MOMENT = datetime(2024, 3, 5, 9, 31, 7, 42000, tzinfo=UTC)
SENDER_WITHOUT_ID = {name: value for name, value in message(1)["sender"].items() if name != "id"}


@pytest.mark.parametrize("made", [user, message])
def test_any_field_may_be_null_or_missing(face, scripted, made):
    read = get_user if made is user else get_message
    for field in (name for name in made(1) if name != "id"):
        odd = made(1, **{field: None})
        expected = replace(read(face, scripted, made(1)), **{field: None})
        if field == "sender_type":
            expected = replace(expected, sender=OtherSender(None, 3, SENDER_WITHOUT_ID))
        for sent in (odd, {name: value for name, value in odd.items() if name != field}):
            assert read(face, scripted, sent) == expected
            assert read(face, scripted, sent, as_dict=True) == sent


def test_an_id_alone_is_a_row(face, scripted):
    assert get_user(face, scripted, {"id": 5}) == User(5, *[None] * 8)
    read = get_message(face, scripted, {"id": 5})
    assert read == Message(5, *[None] * 8, user_id=42)
    rows, _ = list_users(face, scripted, envelope([{"id": 5}]), as_dict=True)
    assert rows == [{"id": 5}]


def test_fields_of_senders_and_attributes_may_be_null_or_missing(face, scripted):
    odd = user(1, user_attributes=[{}, {"name": None, "value": None}, {"value": "pro"}])
    assert get_user(face, scripted, odd).user_attributes == (
        UserAttribute(None, None),
        UserAttribute(None, None),
        UserAttribute(None, "pro"),
    )
    assert get_user(face, scripted, user(1, user_attributes=[])).user_attributes == ()
    of_user = message(1, sender_type="user", sender={"id": 4, "name": None})
    assert get_message(face, scripted, of_user).sender == UserSender(4, None, None)
    of_operator = message(1, sender={"id": 3, "email": None})
    read = get_message(face, scripted, of_operator)
    assert read.sender == OperatorSender(3, None, None, None, None)


def test_unknown_fields_survive_everywhere(face, scripted):
    more = {"vip": True, "tags": ["a", {"b": None}], "score": 1.5, "empty": {}}
    read = get_user(
        face, scripted, user(1, **more, user_attributes=[{"name": "n", "unit": "people"}])
    )
    assert read.extra == more
    assert read.user_attributes == (UserAttribute("n", None, {"unit": "people"}),)
    sent = message(1, sender={**message(1)["sender"], "team": ["blue"]}, **more)
    read = get_message(face, scripted, sent)
    assert read.extra == more
    assert read.sender.extra == {"team": ["blue"]}
    assert get_message(face, scripted, sent, as_dict=True) == sent


@pytest.mark.parametrize("sender_type", ["bot", "", "User", "OPERATOR", None])
def test_a_sender_of_an_unknown_type_survives(face, scripted, sender_type):
    sender = {"id": 9, "name": "Robby", "model": {"version": 3}}
    read = get_message(face, scripted, message(1, sender_type=sender_type, sender=sender))
    assert read.sender_type == sender_type
    assert read.sender == OtherSender(sender_type, 9, {"name": "Robby", "model": {"version": 3}})


@pytest.mark.parametrize("sender", [{}, {"id": None, "name": "Robby"}, {"name": "Robby"}])
@pytest.mark.parametrize("sender_type", ["user", "operator", "bot"])
def test_a_sender_without_an_id_survives(face, scripted, sender_type, sender):
    read = get_message(face, scripted, message(1, sender_type=sender_type, sender=sender))
    assert read.sender == OtherSender(
        sender_type, None, {k: v for k, v in sender.items() if k != "id"}
    )


def test_the_sender_may_stand_ahead_of_its_type(face, scripted):
    sent = {"sender": {"id": 4, "name": "Ada"}, "id": 7, "sender_type": "user"}
    assert get_message(face, scripted, sent).sender == UserSender(4, "Ada", None)


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-05T09:31:07.042Z",
        "2024-03-05T09:31:07.042+00:00",
        "2024-03-05T10:31:07.042+01:00",
        "2024-03-05T15:01:07.042+0530",
        "2024-03-05T01:31:07.042-08",
        "2024-03-05T09:31:07.042000Z",
        "2024-03-05T09:31:07.042000999Z",
        "2024-03-05 09:31:07.042Z",
        "2024-03-05t09:31:07.042z",
        "2024-03-05T09:31:07,042Z",
        "2024-03-05T09:31:07.042",
    ],
)
def test_a_timestamp_of_any_offset_and_precision(face, scripted, text):
    read = get_user(face, scripted, user(1, created_at=text))
    assert read.created_at == MOMENT
    assert read.created_at.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-05T09:31:07Z", datetime(2024, 3, 5, 9, 31, 7, tzinfo=UTC)),
        ("2024-03-05T09:31:07.000001Z", datetime(2024, 3, 5, 9, 31, 7, 1, tzinfo=UTC)),
        ("1969-12-31T23:59:59.999Z", datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-30T22:00:00Z", datetime(9999, 12, 30, 22, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999Z", datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        ("9999-12-31T00:00:00+01:00", datetime(9999, 12, 30, 23, tzinfo=UTC)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_a_timestamp_at_the_edges(face, scripted, text, expected):
    assert get_user(face, scripted, user(1, created_at=text)).created_at == expected


def test_text_that_is_not_utf8_is_replaced_and_counted(face, scripted):
    body = json.dumps(envelope([user(1, name="A?a"), user(2, name="B?b")])).encode()
    rows, report = list_users(face, scripted, body.replace(b"?", b"\xff"))
    assert [one.name for one in rows] == ["A\ufffda", "B\ufffdb"]
    assert report.repaired_text == 2
    rows, report = list_users(face, scripted, body.replace(b"?", b"\xfe"), as_dict=True)
    assert [one["name"] for one in rows] == ["A\ufffda", "B\ufffdb"]
    assert report.repaired_text == 2
    assert report.certificate == "snapshot"


@pytest.mark.parametrize("escape", [r"\ud83d", r"\uDE00", r"\uDBFF"])
@pytest.mark.parametrize("as_dict", [False, True])
def test_a_lone_surrogate_is_replaced_and_counted(face, scripted, escape, as_dict):
    body = json.dumps(envelope([user(1, name="A?a")])).replace("?", escape)
    rows, report = list_users(face, scripted, body, as_dict=as_dict)
    assert (rows[0]["name"] if as_dict else rows[0].name) == "A\ufffda"
    assert report.repaired_text == 1


def test_text_is_repaired_in_names_of_fields_and_in_single_rows(face, scripted):
    body = b'{"id": 42, "na\xffme": "a\\ud800", "x": "\xc3"}'
    assert get_user(face, scripted, body).extra == {"na\ufffdme": "a\ufffd", "x": "\ufffd"}


def test_of_a_key_that_comes_twice_the_last_one_rules(face, scripted):
    body = '{"id": 1, "name": "A", "x": 1, "id": 42, "name": "B", "x": 2}'
    read = get_user(face, scripted, body)
    assert (read.id, read.name, read.extra) == (42, "B", {"x": 2})
    assert get_user(face, scripted, body, as_dict=True) == json.loads(body)


def test_a_key_that_comes_twice_in_a_list(face, scripted):
    """The ids of rows are looked at a first time by the walk, and must be read alike."""
    body = (
        '{"limit": 5, "limit": 99, "offset": 0, "total": 9, "total": 2, "users": [], '
        '"users": [{"id": 1, "id": 42}, {"id": 43, "name": "B"}]}'
    )
    rows, report = list_users(face, scripted, body)
    assert [one.id for one in rows] == [42, 43]
    assert (report.distinct, report.certificate) == (2, "snapshot")


def test_a_byte_order_mark_is_dropped(face, scripted):
    body = b"\xef\xbb\xbf" + json.dumps(user(42)).encode()
    assert get_user(face, scripted, body).id == 42


def test_a_list_of_many_thousand_rows_in_one_answer(face, scripted):
    rows = [{"id": number} for number in range(20_000)]

    def service(request: Any) -> bytes:
        offset = int(request.query["offset"])
        return answer(200, envelope(rows[offset:], offset=offset, total=20_000))

    listing = face.client(scripted(service)).users.list()
    assert [one.id for one in face.collect(listing)] == list(range(20_000))
    assert listing.report.certificate == "snapshot"
