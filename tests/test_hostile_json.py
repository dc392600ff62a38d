"""Odd JSON, by every read: a value as promised, or a DecodeError with its place; never a crash."""

import json
import time
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from backread import DecodeError
from backread.models import UserSender
from canned import ids, message, user
from hostile import READS
from scripted_server import answer

LISTS = ("list", "list as dicts", "columns")
"""Reads of walks, which one row does not stop."""

DEPTH = 200_000
ARRAYS = "[" * DEPTH + "]" * DEPTH
OBJECTS = '{"a":' * DEPTH + "1" + "}" * DEPTH


def served(scripted: Any, member: str) -> Any:
    """A service whose every row is ``{"id": 42, MEMBER}``, also in its lists."""

    def service(request: Any) -> bytes:
        row = f'{{"id": 42, {member}}}'
        key = request.path.rsplit("/", 1)[1]
        if key in ("users", "messages"):
            row = f'{{"limit": 99, "offset": 0, "total": 1, "{key}": [{row}]}}'
        return answer(200, row)

    return scripted(service)


def path_of(face: Any, server: Any, read: str, **options: Any) -> str:
    client = face.client(server, max_retries=0, timeout=20, **options)
    with pytest.raises(DecodeError) as caught:
        READS[read](face, client)
    assert len(caught.value.snippet) <= 200
    assert len(str(caught.value)) < 2_000
    return caught.value.path


@pytest.mark.parametrize("deep", [ARRAYS, OBJECTS], ids=["arrays", "objects"])
@pytest.mark.parametrize("field", ["x", "name", "user_attributes", "sender"])
@pytest.mark.parametrize("read", READS)
def test_a_field_nested_too_deep_is_an_error_and_costs_a_list_one_row(
    face, scripted, read, field, deep
):
    server = served(scripted, f'"{field}": {deep}')
    if read in LISTS:
        assert READS[read](face, face.client(server, max_retries=0)) == []
    else:
        path_of(face, server, read)


@pytest.mark.parametrize("deep", [ARRAYS, OBJECTS], ids=["arrays", "objects"])
@pytest.mark.parametrize("as_dict", [False, True])
def test_what_is_nested_too_deep_is_an_error_of_a_row_and_costs_a_list_that_row(
    face, scripted, deep, as_dict
):
    row = f'{{"id": 42, "x": {deep}}}'
    page = f'{{"limit": 99, "offset": 0, "total": 2, "users": [{row}, {{"id": 1}}]}}'
    client = face.client(scripted(*(answer(200, body) for body in (deep, row, page, page))))
    client = client.with_options(max_retries=0)
    for call in (client.users.get, client.users.get, client.users.page):
        with pytest.raises(DecodeError):
            face.call(call, 42, as_dict=as_dict)
    listing = client.users.list(as_dict=as_dict)
    assert ids(face.collect(listing)) == [1]
    assert "the row with id 42 at offset 0 is nested too deep" in listing.report.reason


@pytest.mark.parametrize("body", [ARRAYS, OBJECTS, ARRAYS[:DEPTH], OBJECTS[:DEPTH]], ids=len)
@pytest.mark.parametrize("read", READS)
def test_an_answer_nested_too_deep_is_an_error(face, scripted, read, body):
    path_of(face, scripted(lambda request: answer(200, body)), read)


@pytest.mark.parametrize("read", READS)
def test_what_is_as_deep_as_json_is_elsewhere_is_a_value(face, scripted, read):
    deep = "[" * 100 + "]" * 100
    server = served(scripted, f'"x": {deep}')
    assert READS[read](face, face.client(server, max_retries=0)) == [42]


@pytest.mark.parametrize(
    "identifier",
    [
        *('"42"', '""', "42.0", "42.5", "4.2e1", "1e3", "1e400", "null", "true", "[42]", "{}"),
        *(str(2**63), str(-(2**63) - 1), "9" * 5_000),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_whole_number_of_64_bits_is_no_id(face, scripted, identifier):
    server = served(scripted, f'"id": {identifier}')
    for read in ("get", "page"):
        path = path_of(face, server, read)
        assert path in ("$.id", "$.users[0].id", "$.messages[0].id")
    for read in ("list", "columns"):
        assert READS[read](face, face.client(server, max_retries=0)) == []


@pytest.mark.parametrize("identifier", [0, -1, 2**63 - 1, -(2**63), 2**53 + 1])
def test_any_whole_number_of_64_bits_is_an_id(face, scripted, identifier):
    server = served(scripted, f'"id": {identifier}')
    for read in READS.values():
        assert read(face, face.client(server, max_retries=0)) == [identifier]


def test_minus_zero_is_zero_as_in_pythons_json(face, scripted):
    server = served(scripted, '"id": -0, "sender_type": "user", "sender": {"id": -0}')
    for read in READS.values():
        assert read(face, face.client(server, max_retries=0)) == [0]
    for read in ("get", "page"):
        assert path_of(face, served(scripted, '"id": -0.0'), read).endswith(".id")
    client = face.client(server)
    [read] = face.collect(client.messages.list(42))
    assert read.sender == UserSender(0, None, None)
    [sent] = face.collect(client.messages.list(42, as_dict=True))
    assert repr(sent["id"]) == "0"


@pytest.mark.parametrize(
    "sent",
    ['"42"', '"many"', "42.0", str(2**63), "9" * 5_000, "true", "[]", "[0]"],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize("name", ["limit", "offset", "total"])
def test_odd_numbers_of_an_envelope_count_as_missing(face, scripted, name, sent):
    members = {"limit": "99", "offset": "0", "total": "1", name: sent}
    said = ", ".join(f'"{key}": {value}' for key, value in members.items())

    def service(request: Any) -> bytes:
        key = request.path.rsplit("/", 1)[1]
        rows = '{"id": 42}' if request.query["offset"] == "0" else ""
        return answer(200, f'{{{said}, "{key}": [{rows}]}}')

    server = scripted(service)
    for read in ("page", "list", "list as dicts", "columns"):
        assert READS[read](face, face.client(server, max_retries=0)) == [42]
    client = face.client(server)
    assert getattr(face.call(client.users.page), name) is None
    listing = client.users.list()
    face.collect(listing)
    assert listing.report.odd_values == 0
    assert name != "total" or listing.report.total_last is None


def test_text_that_is_no_unicode_is_in_every_column(face, scripted):
    body = json.dumps({"limit": 99, "offset": 0, "total": 1, "users": [user(42, name="A?B")]})
    for odd, repaired in ((rb"\ud800", 1), (b"\xff", 1), (b"\xed\xa0\x80", 3), (b"\xc3\x28", 1)):
        server = scripted(lambda request: answer(200, body.encode().replace(b"?", odd)))  # noqa: B023
        listing = face.client(server).users.list()
        [name] = face.call(listing.to_arrow)["name"].to_pylist()
        assert name.startswith("A\ufffd")
        assert name.endswith("B")
        assert listing.report.repaired_text == repaired


def test_of_a_key_that_comes_a_thousand_times_the_last_one_rules(face, scripted):
    many = ", ".join(f'"id": {number}, "x": {number}' for number in range(43))
    server = served(scripted, many)
    for read in READS.values():
        assert read(face, face.client(server, max_retries=0)) == [42]


def test_many_keys_and_many_rows_take_no_time(face, scripted):
    """The processor's time for what is read must not grow with the square of what was sent."""
    keys = ", ".join(f'"key {number}": {number}, "name": {number}' for number in range(20_000))
    server = served(scripted, keys)
    began = time.process_time()
    for read in READS.values():
        assert read(face, face.client(server, max_retries=0)) == [42]
    assert time.process_time() - began < 10


@pytest.mark.parametrize("made", [user, message])
def test_a_row_may_hold_nul_and_other_controls_where_they_are_escaped(face, scripted, made):
    text = "".join(map(chr, range(32))) + "\x7f\u2028\ufeff"
    key = "users" if made is user else "messages"
    row = made(42, name=text, body=text, **{text: text})
    rows = {"limit": 99, "offset": 0, "total": 1, key: [row]}
    client = face.client(scripted(lambda request: answer(200, rows)))
    source = client.users.list() if made is user else client.messages.list(42)
    [read] = face.collect(source)
    assert read.extra[text] == text
    [column] = face.call(source.to_arrow)["extra"].to_pylist()
    assert json.loads(column)[text] == text
