"""Odd answers: what is tolerated and how it looks, and what is a DecodeError and where it points."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from backread import DecodeError
from backread.models import Message, OperatorSender, OtherSender, User, UserAttribute, UserSender
from canned import envelope, message, user, users
from scripted_server import answer

MOMENT = datetime(2024, 3, 5, 9, 31, 7, 42000, tzinfo=UTC)


def get_user(face: Any, scripted: Any, body: Any, **options: Any) -> Any:
    server = scripted(answer(200, body))
    return face.call(face.client(server, max_retries=0).users.get, 42, **options)


def get_message(face: Any, scripted: Any, body: Any, **options: Any) -> Any:
    server = scripted(answer(200, body))
    return face.call(face.client(server, max_retries=0).messages.get, 42, 7, **options)


def list_users(face: Any, scripted: Any, body: Any, **options: Any) -> tuple[list[Any], Any]:
    listing = face.client(scripted(answer(200, body)), max_retries=0).users.list(**options)
    return face.collect(listing), listing.report


def decode_error(read: Any, *arguments: Any, **options: Any) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        read(*arguments, **options)
    return caught.value


@pytest.mark.parametrize("field", [name for name in user(1) if name != "id"])
def test_any_field_of_a_user_may_be_null_or_missing(
    face: Any, scripted: Any, field: str
) -> None:
    whole = get_user(face, scripted, user(1))
    for odd in (user(1, **{field: None}), {k: v for k, v in user(1).items() if k != field}):
        read = get_user(face, scripted, odd)
        assert getattr(read, field) is None
        assert read.extra == {}
        for other in user(1):
            if other != field:
                assert getattr(read, other) == getattr(whole, other)
        assert get_user(face, scripted, odd, as_dict=True) == odd


@pytest.mark.parametrize("field", [name for name in message(1) if name != "id"])
def test_any_field_of_a_message_may_be_null_or_missing(
    face: Any, scripted: Any, field: str
) -> None:
    for odd in (message(1, **{field: None}), {k: v for k, v in message(1).items() if k != field}):
        read = get_message(face, scripted, odd)
        assert getattr(read, field) is None
        assert (read.id, read.user_id, read.extra) == (1, 42, {})
        assert get_message(face, scripted, odd, as_dict=True) == odd


def test_an_id_alone_is_a_row(face: Any, scripted: Any) -> None:
    assert get_user(face, scripted, {"id": 5}) == User(5, *[None] * 8)
    read = get_message(face, scripted, {"id": 5})
    assert read == Message(5, *[None] * 8, user_id=42)
    rows, _ = list_users(face, scripted, envelope([{"id": 5}]), as_dict=True)
    assert rows == [{"id": 5}]


def test_fields_of_senders_and_attributes_may_be_null_or_missing(
    face: Any, scripted: Any
) -> None:
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


def test_unknown_fields_survive_everywhere(face: Any, scripted: Any) -> None:
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


def test_as_dict_keeps_the_order_of_the_keys(face: Any, scripted: Any) -> None:
    sent = {"zeta": 1, "name": "Ada", "id": 42, "alpha": {"y": 1, "x": 2}}
    read = get_user(face, scripted, sent, as_dict=True)
    assert json.dumps(read) == json.dumps(sent)


@pytest.mark.parametrize("sender_type", ["bot", "", "User", "OPERATOR", None])
def test_a_sender_of_an_unknown_type_survives(
    face: Any, scripted: Any, sender_type: str | None
) -> None:
    sender = {"id": 9, "name": "Robby", "model": {"version": 3}}
    read = get_message(face, scripted, message(1, sender_type=sender_type, sender=sender))
    assert read.sender_type == sender_type
    assert read.sender == OtherSender(sender_type, 9, {"name": "Robby", "model": {"version": 3}})


@pytest.mark.parametrize("sender", [{}, {"id": None, "name": "Robby"}, {"name": "Robby"}])
@pytest.mark.parametrize("sender_type", ["user", "operator", "bot"])
def test_a_sender_without_an_id_survives(
    face: Any, scripted: Any, sender_type: str, sender: dict[str, Any]
) -> None:
    read = get_message(face, scripted, message(1, sender_type=sender_type, sender=sender))
    assert read.sender == OtherSender(
        sender_type, None, {k: v for k, v in sender.items() if k != "id"}
    )


def test_the_sender_may_stand_ahead_of_its_type(face: Any, scripted: Any) -> None:
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
def test_a_timestamp_of_any_offset_and_precision(face: Any, scripted: Any, text: str) -> None:
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
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_a_timestamp_at_the_edges(
    face: Any, scripted: Any, text: str, expected: datetime
) -> None:
    assert get_user(face, scripted, user(1, created_at=text)).created_at == expected


@pytest.mark.parametrize(
    "text", ["yesterday", "", "2023-02-29T00:00:00Z", "0000-00-00T00:00:00Z", "12024-01-01", 5]
)
def test_what_is_no_timestamp_is_a_decode_error_that_says_so(
    face: Any, scripted: Any, text: Any
) -> None:
    error = decode_error(get_user, face, scripted, user(1, created_at=text))
    assert error.path == "$.created_at"
    assert json.dumps(text) in error.snippet
    assert "timestamp" in str(error)
    assert get_user(face, scripted, user(1, created_at=text), as_dict=True)["created_at"] == text


def test_text_that_is_not_utf8_is_replaced_and_counted(face: Any, scripted: Any) -> None:
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
def test_a_lone_surrogate_is_replaced_and_counted(
    face: Any, scripted: Any, escape: str, as_dict: bool
) -> None:
    body = json.dumps(envelope([user(1, name="A?a")])).replace("?", escape)
    rows, report = list_users(face, scripted, body, as_dict=as_dict)
    assert (rows[0]["name"] if as_dict else rows[0].name) == "A\ufffda"
    assert report.repaired_text == 1


def test_text_that_is_unicode_stays_as_it_is(face: Any, scripted: Any) -> None:
    names = ["😀", "\\ud83d", "\\\\ud83d", "é\u0301", "\u0000", "\u202e", "\ufffd", "𝔘", "\x7f"]
    rows = [user(number, name=name) for number, name in enumerate(names)]
    read, report = list_users(face, scripted, envelope(rows))
    assert [one.name for one in read] == names
    assert report.repaired_text == 0


def test_text_is_repaired_in_names_of_fields_and_in_single_rows(
    face: Any, scripted: Any
) -> None:
    body = b'{"id": 42, "na\xffme": "a\\ud800", "x": "\xc3"}'
    assert get_user(face, scripted, body).extra == {"na\ufffdme": "a\ufffd", "x": "\ufffd"}


def test_numbers_in_extra_are_exact(face: Any, scripted: Any) -> None:
    numbers = {
        "large": 2**63,
        "larger": 10**40 + 7,
        "negative": -(2**90),
        "edge": 2**64 - 1,
        "zero": 0,
        "half": 0.5,
        "tiny": 1e-300,
        "nested": [2**70, {"deep": -(2**63) - 1}],
    }
    for as_dict in (False, True):
        read = get_user(face, scripted, user(42, **numbers), as_dict=as_dict)
        extra = read if as_dict else read.extra
        for name, number in numbers.items():
            assert extra[name] == number
            assert type(extra[name]) is type(number)


def test_of_a_key_that_comes_twice_the_last_one_rules(face: Any, scripted: Any) -> None:
    body = '{"id": 1, "name": "A", "x": 1, "id": 42, "name": "B", "x": 2}'
    read = get_user(face, scripted, body)
    assert (read.id, read.name, read.extra) == (42, "B", {"x": 2})
    assert get_user(face, scripted, body, as_dict=True) == json.loads(body)


def test_a_key_that_comes_twice_in_a_list(face: Any, scripted: Any) -> None:
    """The ids of rows are looked at a first time by the walk, and must be read alike."""
    body = (
        '{"limit": 5, "limit": 99, "offset": 0, "total": 9, "total": 2, "users": [], '
        '"users": [{"id": 1, "id": 42}, {"id": 43, "name": "B"}]}'
    )
    rows, report = list_users(face, scripted, body)
    assert [one.id for one in rows] == [42, 43]
    assert (report.distinct, report.certificate) == (2, "snapshot")


def test_a_key_that_comes_twice_in_a_sender(face: Any, scripted: Any) -> None:
    body = '{"id": 7, "sender_type": "user", "sender": {"id": 1, "name": "A", "id": 4}}'
    assert get_message(face, scripted, body).sender == UserSender(4, "A", None)


def test_a_byte_order_mark_is_dropped(face: Any, scripted: Any) -> None:
    body = b"\xef\xbb\xbf" + json.dumps(user(42)).encode()
    assert get_user(face, scripted, body).id == 42


def test_white_space_around_is_no_matter(face: Any, scripted: Any) -> None:
    assert get_user(face, scripted, b' \r\n\t{"id":42}\n ').id == 42


BAD_IDS = {
    "text": "42",
    "a fraction": 4.5,
    "a whole fraction": 42.0,
    "2**63": 2**63,
    "2**200": 2**200,
    "null": None,
    "an array": [42],
    "true": True,
}


@pytest.mark.parametrize("kind", BAD_IDS)
def test_an_id_that_is_no_integer_is_a_decode_error_that_points_to_it(
    face: Any, scripted: Any, kind: str
) -> None:
    odd = user(BAD_IDS[kind])
    assert decode_error(get_user, face, scripted, odd).path == "$.id"
    rows = [*users(3), odd, *users(6)[4:]]

    def page() -> None:
        client = face.client(scripted(answer(200, envelope(rows))))
        face.call(client.users.page)

    for read in (lambda: list_users(face, scripted, envelope(rows)), page):
        error = decode_error(read)
        assert error.path == "$.users[3].id"
        assert json.dumps(BAD_IDS[kind])[:20] in error.snippet
        assert "$.users[3].id" in str(error)
    as_dict, _ = list_users(face, scripted, envelope(rows), as_dict=True)
    assert as_dict == rows


def test_a_missing_id_is_a_decode_error_that_names_it(face: Any, scripted: Any) -> None:
    error = decode_error(list_users, face, scripted, envelope([user(1), {"name": "Ada"}]))
    assert error.path.startswith("$.users[1]")
    assert "id" in str(error)
    assert "Ada" in error.snippet


def test_a_decode_error_of_a_list_says_which_request_it_was(face: Any, scripted: Any) -> None:
    first = answer(200, envelope(users(2), total=4))
    second = answer(200, envelope([user("x"), user(4)], offset=2, total=4))
    client = face.client(scripted(first, second), max_retries=0)
    error = decode_error(face.collect, client.users.list(page_size=2))
    assert "GET /external/users?offset=2&limit=2" in str(error)
    assert [one.status for one in error.attempts] == [200]


def test_a_decode_error_of_a_page_has_its_attempt(face: Any, scripted: Any) -> None:
    client = face.client(scripted(answer(200, envelope([user("x")]))))
    error = decode_error(face.call, client.users.page, 7, 5)
    assert "GET /external/users?offset=7&limit=5" in str(error)
    assert [one.status for one in error.attempts] == [200]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": 5}, "$.name"),
        ({"email": ["a"]}, "$.email"),
        ({"user_attributes": {}}, "$.user_attributes"),
        ({"user_attributes": [{"name": "a"}, {"name": 5}]}, "$.user_attributes[1].name"),
        ({"user_attributes": ["a"]}, "$.user_attributes[0]"),
    ],
)
def test_a_field_of_another_type_is_a_decode_error_that_points_to_it(
    face: Any, scripted: Any, changes: Any, path: str
) -> None:
    error = decode_error(get_user, face, scripted, user(1, **changes))
    assert error.path == path
    assert len(error.snippet) <= 200
    assert get_user(face, scripted, user(1, **changes), as_dict=True) == user(1, **changes)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"sender": []}, "$.sender"),
        ({"sender": "Ada"}, "$.sender"),
        ({"sender": {"id": "3"}}, "$.sender.id"),
        ({"sender": {"id": 3, "forename": 5}}, "$.sender.forename"),
        ({"read_by_user": "yes"}, "$.read_by_user"),
        ({"sender_type": 3}, "$.sender_type"),
    ],
)
def test_a_field_of_a_message_of_another_type(
    face: Any, scripted: Any, changes: Any, path: str
) -> None:
    assert decode_error(get_message, face, scripted, message(1, **changes)).path == path
    listed = answer(200, envelope([message(0), message(1, **changes)], key="messages"))
    client = face.client(scripted(listed), max_retries=0)
    error = decode_error(face.collect, client.messages.list(42))
    assert error.path == path.replace("$", "$.messages[1]")


@pytest.mark.parametrize("body", ["[]", '[{"id": 42}]', "5", '"text"', "true", "null", "1e999"])
@pytest.mark.parametrize("as_dict", [False, True])
def test_json_that_is_no_object_is_a_decode_error(
    face: Any, scripted: Any, body: str, as_dict: bool
) -> None:
    for read in (get_user, get_message, list_users):
        error = decode_error(read, face, scripted, body, as_dict=as_dict)
        assert error.path == "$"
        assert body[:3] in error.snippet


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"limit": 99, "offset": 0, "total": 0},
        {"users": None},
        {"messages": []},
        {"users": {}},
        {"users": "none"},
        {"users": [], "total": "many"},
    ],
    ids=repr,
)
def test_a_list_of_another_shape_is_a_decode_error_and_no_empty_list(
    face: Any, scripted: Any, body: Any
) -> None:
    error = decode_error(list_users, face, scripted, body)
    assert error.path in ("$.users", "$.total", "$")
    assert "/external/users" in str(error)
    client = face.client(scripted(answer(200, body), answer(200, body)), max_retries=0)
    decode_error(face.call, client.users.page)


@pytest.mark.parametrize("row", [None, 5, "Ada", [], [{"id": 1}], True], ids=repr)
def test_a_row_that_is_no_object_is_a_decode_error(face: Any, scripted: Any, row: Any) -> None:
    for as_dict in (False, True):
        rows = envelope([user(1), row])
        error = decode_error(list_users, face, scripted, rows, as_dict=as_dict)
        assert error.path == "$.users[1]"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "   ",
        "<!doctype html><p>Sign in</p>",
        '{"id": 42, "name": "A',
        '{"id": 42,}',
        "{'id': 42}",
        '{"id": NaN}',
        '{"id": 42, "x": Infinity}',
        '{"id": 42} {"id": 43}',
        '{"id": 042}',
        "\x00\x01\x02",
        '{"id": 42, "x": "\n"}',
        '{"id": 42, "x": "\\q"}',
    ],
    ids=repr,
)
@pytest.mark.parametrize("as_dict", [False, True])
def test_what_is_no_json_is_a_decode_error(
    face: Any, scripted: Any, body: str, as_dict: bool
) -> None:
    for read in (get_user, list_users):
        error = decode_error(read, face, scripted, body, as_dict=as_dict)
        assert len(error.snippet) <= 200
        assert [one.status for one in error.attempts] == [200]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_an_answer_nested_too_deep_is_an_error_and_no_crash(
    face: Any, scripted: Any, opening: str
) -> None:
    closing = "]" if opening == "[" else "1}"[1:]
    deep = opening * 200_000 + ("1" if opening != "[" else "") + closing * 200_000
    for body in (deep, f'{{"id": 42, "x": {deep}}}', f'{{"users": [{{"id": 1, "x": {deep}}}]}}'):
        for read in (get_user, list_users):
            for as_dict in (False, True):
                decode_error(read, face, scripted, body, as_dict=as_dict)


def test_a_list_of_many_thousand_rows_in_one_answer(face: Any, scripted: Any) -> None:
    rows, report = list_users(face, scripted, envelope([{"id": n} for n in range(20_000)]))
    assert [one.id for one in rows] == list(range(20_000))
    assert report.certificate == "snapshot"
