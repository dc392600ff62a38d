"""Answers of the wrong shape: each is a DecodeError that points to the place."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from canned import envelope, message, user, users
from readers import decode_error, get_message, get_user, list_users
from scripted_server import answer


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


def test_the_advice_fits_the_fault(face: Any, scripted: Any) -> None:
    """Dicts help where a field has another type; not where there is no JSON, nor who has dicts."""
    odd = decode_error(get_user, face, scripted, user(42, name=5))
    assert "as_dict=True" in str(odd)
    for body in ("<html>Sign in</html>", "[]"):
        for as_dict in (False, True):
            for read in (get_user, list_users):
                error = decode_error(read, face, scripted, body, as_dict=as_dict)
                assert "as_dict" not in str(error)


DIGITS = "-" + "9" * 5_000


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (f'"x": {DIGITS}', ".x"),
        (f'"x": [0, {{"y": {DIGITS}}}]', ".x[1].y"),
        (f'"user_attributes": [{{"name": "a", "z": {DIGITS}}}]', ".user_attributes[0].z"),
    ],
    ids=["x", "x[1].y", "user_attributes[0].z"],
)
def test_a_number_that_python_does_not_take_is_a_decode_error_that_points_to_it(
    face: Any, scripted: Any, field: str, path: str
) -> None:
    """An int of more than 4,300 digits could not be printed either."""
    row = f'{{"id": 7, {field}}}'
    rows = f'{{"limit": 99, "offset": 0, "total": 2, "users": [{{"id": 1}}, {row}]}}'
    for as_dict in (False, True):
        assert decode_error(get_user, face, scripted, row, as_dict=as_dict).path == f"$.{path[1:]}"
        error = decode_error(list_users, face, scripted, rows, as_dict=as_dict)
        assert error.path == f"$.users[1]{path}"
        assert "5000 digits" in str(error)
        assert "set_int_max_str_digits" in str(error)
        assert "9999" in error.snippet
        client = face.client(scripted(answer(200, rows)))
        error = decode_error(face.call, client.users.page, as_dict=as_dict)
        assert error.path == f"$.users[1]{path}"


def test_a_number_of_any_length_is_in_the_columns(face: Any, scripted: Any) -> None:
    pytest.importorskip("pyarrow")
    row = f'{{"id": 7, "x": {DIGITS}, "y": {DIGITS}.5}}'
    listing = face.client(
        scripted(answer(200, f'{{"limit": 9, "offset": 0, "total": 1, "users": [{row}]}}'))
    ).users.list()
    table = face.call(listing.to_arrow)
    assert table["extra"].to_pylist() == [f'{{"x":{DIGITS},"y":{DIGITS}.5}}']


def test_python_says_how_long_a_number_may_be(face: Any, scripted: Any) -> None:
    row = f'{{"id": 7, "x": {DIGITS}}}'
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(5_000)
    try:
        assert get_user(face, scripted, row).extra == {"x": 1 - 10**5_000}
        assert get_user(face, scripted, row, as_dict=True)["x"] == 1 - 10**5_000
    finally:
        sys.set_int_max_str_digits(before)


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
