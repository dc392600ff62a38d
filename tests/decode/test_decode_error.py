"""Responses that cannot be read: which call raises a DecodeError, its place, and what it advises.

What each JSON becomes as a dataclass, a dict and a row of a table is in
test_faces_decoded_alike.py; what is accepted as JSON, in the tests of src/core/decode.
"""

import json
import sys
import time
from decimal import Decimal
from typing import Any

import pytest

from backread import DecodeError, IncompleteError
from helpers.api_rows import envelope, ids, user, users
from helpers.scripted_server import answer


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


BAD_IDS = {
    "text": "42",
    "2**63": 2**63,
    "null": None,
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
    assert "/external/users?offset=7&limit=5: " in str(error)
    assert [one.status for one in error.attempts] == [200]


@pytest.mark.parametrize("body", ["[]", "5", "null"])
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
        {"users": None},
        {"messages": []},
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


@pytest.mark.parametrize("row", [None, [{"id": 1}]], ids=repr)
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
        "<!doctype html><p>Sign in</p>",
        '{"id": 42, "x": Infinity}',
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


DEPTH = 200_000


@pytest.mark.parametrize(
    "deep", ["[" * DEPTH + "]" * DEPTH, '{"a":' * DEPTH + "1" + "}" * DEPTH], ids=len
)
@pytest.mark.parametrize("as_dict", [False, True])
def test_deeply_nested_json_is_an_error_of_a_row_and_costs_a_list_that_row(
    face, scripted, deep, as_dict
):
    row = f'{{"id": 42, "x": {deep}}}'
    page = f'{{"limit": 99, "offset": 0, "total": 2, "users": [{row}, {{"id": 1}}]}}'
    server = scripted(*(answer(200, body) for body in (deep, row, page, page)))
    client = face.client(server, max_retries=0)
    for call in (client.users.get, client.users.get, client.users.page):
        decode_error(face.call, call, 42, as_dict=as_dict)
    listing = client.users.list(as_dict=as_dict)
    assert ids(face.collect(listing)) == [1]
    assert "the row with id 42 at offset 0 is nested too deep" in listing.report.reason


def test_many_keys_are_read_in_linear_time(face, scripted):
    keys = ", ".join(f'"key {number}": {number}, "name": {number}' for number in range(20_000))
    began = time.process_time()
    for as_dict in (False, True):
        get_user(face, scripted, f'{{"id": 42, {keys}}}', as_dict=as_dict)
    assert time.process_time() - began < 5
