"""Answers of the wrong shape: a DecodeError with the place, or odd values that are kept."""

import json
import sys
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from backread import IncompleteError
from backread.models import OperatorSender, OtherSender, UserAttribute
from canned import envelope, message, user, users
from readers import decode_error, get_message, get_user, list_users
from scripted_server import answer

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
def test_an_id_that_is_no_integer_is_a_decode_error_of_one_row_or_page_and_of_no_list(
    face, scripted, kind
):
    odd = user(BAD_IDS[kind])
    assert decode_error(get_user, face, scripted, odd).path == "$.id"
    rows = [*users(3), odd, *users(6)[4:]]
    client = face.client(scripted(answer(200, envelope(rows))))
    error = decode_error(face.call, client.users.page)
    assert error.path == "$.users[3].id"
    assert json.dumps(BAD_IDS[kind])[:20] in error.snippet
    assert "$.users[3].id" in str(error)
    read, report = list_users(face, scripted, envelope(rows))
    assert [each.id for each in read] == [1, 2, 3, 5, 6]
    assert report.certificate == "uncertified"
    assert "the row at offset 3 has no integer id" in report.reason
    as_dict, report = list_users(face, scripted, envelope(rows), as_dict=True)
    assert as_dict == rows
    assert report.certificate == "uncertified"


def test_a_row_that_becomes_no_record_makes_a_strict_list_incomplete(face, scripted):
    for odd in (user("x"), 5, {"name": "Ada"}):
        for as_dict in (False, True):
            client = face.client(scripted(answer(200, envelope([user(1), odd]))))
            with pytest.raises(IncompleteError, match="the row at offset 1"):
                face.collect(client.users.list(strict=True, as_dict=as_dict))


def test_more_than_some_rows_without_an_id_are_counted(face, scripted):
    rows = [user(1), *({"name": str(number)} for number in range(9))]
    read, report = list_users(face, scripted, envelope(rows))
    assert [each.id for each in read] == [1]
    assert report.reason.count("the row at offset") == 5
    assert "and 4 more rows cannot be read" in report.reason


def test_a_missing_id_is_a_decode_error_that_names_it(face, scripted):
    client = face.client(scripted(answer(200, envelope([user(1), {"name": "Ada"}]))))
    error = decode_error(face.call, client.users.page)
    assert error.path.startswith("$.users[1]")
    assert "id" in str(error)
    assert "Ada" in error.snippet


def test_a_decode_error_of_a_page_has_its_attempt(face, scripted):
    client = face.client(scripted(answer(200, envelope([user("x")]))))
    error = decode_error(face.call, client.users.page, 7, 5)
    assert "GET /external/users?offset=7&limit=5" in str(error)
    assert [one.status for one in error.attempts] == [200]


TEXTS_THAT_ARE_NO_TIMES = ["yesterday", "", "2023-02-29T00:00:00Z", "0000-00-00T00:00:00Z"]
ODD_USERS: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    *(
        ({"created_at": text}, {"created_at": None, "extra": {"created_at": text}}, 1)
        for text in [*TEXTS_THAT_ARE_NO_TIMES, "12024-01-01", 5]
    ),
    ({"name": 5}, {"name": None, "extra": {"name": 5}}, 1),
    ({"email": ["a"], "x": 1}, {"email": None, "extra": {"email": ["a"], "x": 1}}, 1),
    ({"user_attributes": {}}, {"user_attributes": None, "extra": {"user_attributes": {}}}, 1),
    (
        {"user_attributes": [{"name": "plan", "value": 3}]},
        {"user_attributes": (UserAttribute("plan", None, {"value": 3}),)},
        1,
    ),
    (
        {"user_attributes": [17, {"name": "a", "value": "b"}, None]},
        {
            "user_attributes": (UserAttribute("a", "b"),),
            "extra": {"user_attributes": [17, None]},
        },
        2,
    ),
]


@pytest.mark.parametrize(("sent", "read", "count"), ODD_USERS, ids=repr)
def test_a_value_of_another_type_is_kept_as_sent_and_counted(face, scripted, sent, read, count):
    row = user(1, **sent)
    plain = get_user(face, scripted, user(1))
    expected = replace(plain, **read)
    assert get_user(face, scripted, row) == expected
    assert get_user(face, scripted, row, as_dict=True) == row
    items, report = list_users(face, scripted, envelope([user(0), row]))
    assert items[1] == expected
    assert report.odd_values == count
    assert report.certificate == "snapshot"


ODD_MESSAGES: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    ({"sender": [1]}, {"sender": None, "extra": {"sender": [1]}}, 1),
    ({"sender": "Ada"}, {"sender": None, "extra": {"sender": "Ada"}}, 1),
    (
        {"sender_type": "operator", "sender": {"id": "3", "surname": "Lee"}},
        {"sender": OtherSender("operator", None, {"id": "3", "surname": "Lee"})},
        1,
    ),
    (
        {"sender_type": "operator", "sender": {"id": 3, "forename": 5}},
        {"sender": OperatorSender(3, None, None, None, None, {"forename": 5})},
        1,
    ),
    (
        {"sender_type": 3, "sender": {"id": 3, "name": "A"}},
        {
            "sender_type": None,
            "sender": OtherSender(None, 3, {"name": "A"}),
            "extra": {"sender_type": 3},
        },
        1,
    ),
    ({"read_by_user": "yes"}, {"read_by_user": None, "extra": {"read_by_user": "yes"}}, 1),
]


@pytest.mark.parametrize(("sent", "read", "count"), ODD_MESSAGES, ids=repr)
def test_a_value_of_a_message_of_another_type_is_kept_as_sent_and_counted(
    face, scripted, sent, read, count
):
    row = message(1, **sent)
    plain = get_message(face, scripted, message(1))
    types = {"sender_type": sent["sender_type"]} if "sender_type" in sent else {}
    expected = replace(plain, **{**types, **read})
    assert get_message(face, scripted, row) == expected
    listed = answer(200, envelope([message(0), row], key="messages"))
    listing = face.client(scripted(listed), max_retries=0).messages.list(42)
    assert face.collect(listing)[1] == expected
    assert listing.report.odd_values == count


@pytest.mark.parametrize("body", ["[]", '[{"id": 42}]', "5", '"text"', "true", "null", "1e999"])
@pytest.mark.parametrize("as_dict", [False, True])
def test_json_that_is_no_object_is_a_decode_error(face, scripted, body, as_dict):
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
    ],
    ids=repr,
)
def test_a_list_of_another_shape_is_a_decode_error_and_no_empty_list(face, scripted, body):
    error = decode_error(list_users, face, scripted, body)
    assert error.path in ("$.users", "$")
    assert "/external/users" in str(error)
    client = face.client(scripted(answer(200, body), answer(200, body)), max_retries=0)
    decode_error(face.call, client.users.page)


@pytest.mark.parametrize("total", [0, 3])
def test_null_with_a_total_is_an_empty_list(face, scripted, total):
    body = {"limit": 99, "offset": 0, "total": total, "users": None}
    listing = face.client(scripted(lambda request: answer(200, body))).users.list()
    assert face.collect(listing) == []
    assert listing.report.certificate == ("uncertified" if total else "snapshot")


@pytest.mark.parametrize("row", [None, 5, "Ada", [], [{"id": 1}], True], ids=repr)
def test_a_row_that_is_no_object_is_left_out_and_named(face, scripted, row):
    rows = envelope([user(1), row])
    read, report = list_users(face, scripted, rows)
    assert [each.id for each in read] == [1]
    assert report.reason is not None
    assert "the row at offset 1 is not an object" in report.reason
    assert list_users(face, scripted, rows, as_dict=True)[0] == [user(1), row]
    client = face.client(scripted(answer(200, rows)))
    assert decode_error(face.call, client.users.page).path == "$.users[1]"


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
def test_what_is_no_json_is_a_decode_error(face, scripted, body, as_dict):
    for read in (get_user, list_users):
        error = decode_error(read, face, scripted, body, as_dict=as_dict)
        assert len(error.snippet) <= 200
        assert [one.status for one in error.attempts] == [200]


def test_the_advice_fits_the_fault(face, scripted):
    """Dicts help where a row has no id; not where there is no JSON, nor who has dicts."""
    odd = decode_error(get_user, face, scripted, user("42"))
    assert "as_dict=True" in str(odd)
    for body in ("<html>Sign in</html>", "[]"):
        for as_dict in (False, True):
            for read in (get_user, list_users):
                error = decode_error(read, face, scripted, body, as_dict=as_dict)
                assert "as_dict" not in str(error)


DIGITS = "-" + "9" * 5_000


def test_a_number_of_more_digits_than_python_takes_is_a_decimal(face, scripted):
    """An int of more than 4,300 digits could not be printed either."""
    row = f'{{"id": 7, "x": [0, {{"y": {DIGITS}}}], "name": {DIGITS}}}'
    exact = Decimal(DIGITS)
    for as_dict in (False, True):
        one = get_user(face, scripted, row, as_dict=as_dict)
        held = one if as_dict else one.extra
        assert held["x"] == [0, {"y": exact}]
        assert held["name"] == exact
        rows = f'{{"limit": 99, "offset": 0, "total": 1, "users": [{row}]}}'
        assert list_users(face, scripted, rows, as_dict=as_dict)[0] == [one]


def test_decimals_go_back_into_columns(face, scripted):
    pytest.importorskip("pyarrow")
    row = f'{{"id": 7, "x": {DIGITS}, "y": {DIGITS}.5}}'
    body = f'{{"limit": 9, "offset": 0, "total": 1, "users": [{row}]}}'
    client = face.client(scripted(lambda request: answer(200, body)))
    listed = face.call(client.users.list().to_arrow)["extra"].to_pylist()
    assert listed == [f'{{"x":{DIGITS},"y":{DIGITS}.5}}']
    assert (
        face.call(client.users.page).to_arrow()["extra"].to_pylist()[0].startswith(listed[0][:99])
    )


def test_python_says_how_long_a_number_may_be(face, scripted):
    row = f'{{"id": 7, "x": {DIGITS}}}'
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(5_000)
    try:
        assert get_user(face, scripted, row).extra == {"x": 1 - 10**5_000}
        assert get_user(face, scripted, row, as_dict=True)["x"] == 1 - 10**5_000
    finally:
        sys.set_int_max_str_digits(before)
