"""One answer as dataclasses, dicts, columns and a mirror: all are what Python's json makes of it.

What is accepted as JSON, and what each field may hold, is tested in src/core/decode.
"""

import json
import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict
from decimal import Decimal
from itertools import chain, product
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from backread.models import Page
from helpers import expected_rows
from helpers.api_rows import message, user
from helpers.mirrors import sync
from helpers.scripted_server import Request, answer

SPELLED = r"""
    null true false 0 -0 -1 7 7.0 7e0 0.5 1e999 9223372036854775807 9223372036854775808
    -9223372036854775808 -9223372036854775809 "" "seven" "user" "2024-03-05T09:31:07.042Z"
    "\ud83d" "\u0000\ud83d\ude00" [] [null] [[]] [{}] [{},7] [{"name":7}] [{"value":[]}] [{"x":{}}]
    [{"name":"b","value":"2"},{"name":"a","value":"1","unit":"x"},{}]
    {} {"x":7} {"id":7} {"id":null} {"id":"7"} {"id":7.0} {"id":7,"id":8} {"id":7,"name":7}
    {"id":7,"email":"a","x":[]} {"id":7,"forename":{}}
    {"$serde_json::private::Number":"12","\u0024serde_json::private::RawValue":"[1,2]"}
"""
VALUES = SPELLED.split()
"""One of each kind of value, as JSON."""

ODD_ROWS = [
    {},
    {"created_at": '"1969-12-31T23:59:59.999999Z"', "online_at": '"0001-01-01T00:00:00Z"'},
    {"created_at": '"2024-02-29T12:30:45+05:30"', "online_at": '"9999-12-30T21:59:59.999999Z"'},
    {"more": "1", "n\\u0061me": '"a\\tb\\"c"', "\\u0062ody": '"\\u00e9/\\/"', "é": "[ 1 , 2 ]"},
    {"created_at": "7", "created\\u005fat": '"2024-03-05T09:31:07.042Z"', "more": '{"a":1,"a":2}'},
    {"created_at": '"2024-03-05T09:31:07Z"', "created\\u005fat": "7", "x": "1", "\\u0078": "2"},
    {"i\\u0064": "7", "body": '"last"', "name": '"last"'},
    {f"key {number:04}": str(number) for number in range(2_000)},
]
"""Members before the id, with some escaped, unknown or there twice."""

ADA = '{"id":42,"name":"Ada","email":"ada@example.com"}'
SENDERS = [
    json.dumps(message(1)["sender"]),
    *(ADA.replace('"Ada"', name) for name in ('"Ada"', "null", '"Ada","vip":true', '7,"vip":1')),
    *(ADA.replace("42", str(number)) for number in range(100, 120)),
    *VALUES,
]


def spelled_rows(key: str) -> Iterator[dict[str, str]]:
    """The members of rows but for their ids: each as sent."""
    whole = user(0) if key == "users" else message(0)
    documented = {name: json.dumps(value) for name, value in whole.items() if name != "id"}
    yield documented
    yield from ODD_ROWS
    for first in range(len(VALUES)):
        values = VALUES[first:] + VALUES[:first]
        yield dict(zip(documented, values, strict=False))
    if key == "messages":
        # Some come again, because equal senders are one object.
        for sender, kind in product(SENDERS, ('"user"', '"operator"', '"bot"', '"robot"')):
            yield {**documented, "sender_type": kind, "sender": sender}
            yield {"sender": sender, "sender_type": kind}


def written(key: str) -> list[str]:
    """The same as JSON, each with its own id."""
    rows = []
    for number, members in enumerate(spelled_rows(key), 2**53 + 1):
        before = "".join(f'"{name}":{value},' for name, value in members.items())
        rows.append(f'{{{before}"id":{number}}}')
    return rows


def service(key: str, rows: list[str]) -> Callable[[Request], bytes]:
    def respond(request: Request) -> bytes:
        *_, last = request.path.split("/")
        listed = rows if last == key else ['{"id":42}'] if last == "users" else []
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        page = ",".join(listed[offset : offset + limit])
        numbers = f'"limit":{limit},"offset":{offset},"total":{len(listed)}'
        return answer(200, f'{{{numbers},"{last}":[{page}]}}')

    return respond


def same(*values: Any) -> bool:
    """Equal in value, in type and in the order of keys, all the way down."""
    # The repr of a model is short; that of its fields is not.
    one, other = (repr(asdict(Page(None, None, None, (value,)))) for value in values)
    return one == other


@pytest.mark.parametrize("key", ["users", "messages"])
def test_all_faces_are_what_was_sent(face, scripted, mirror, key):
    rows = written(key)
    expected = expected_rows.rows(f'{{"{key}":[{",".join(rows)}]}}'.encode(), key)
    models, sent = [row.model for row in expected], [row.sent for row in expected]
    server = scripted(service(key, rows))
    client = face.client(server)
    source, whose = (client.users, ()) if key == "users" else (client.messages, (42,))
    listing = source.list(*whose)
    read = face.collect(listing)
    assert same(read, models)
    assert read == models
    assert listing.report.odd_values == sum(row.odd_values for row in expected)
    assert same(face.collect(source.list(*whose, as_dict=True)), sent)
    assert same(list(chain(*face.pages(source.list(*whose)))), models)
    page = face.call(source.page, *whose)
    assert same(list(page), models[:99])
    assert same(face.call(source.page, *whose, as_dict=True)[key], sent[:99])
    assert sync(mirror, server).odd_values
    columns = [expected_rows.columns(model) for model in models]
    table = face.call(listing.to_arrow)
    mirrored = mirror.table(key).to_arrow().sort_by("id").select(table.column_names)
    for rows_read in (table, page.to_arrow(), mirrored):
        loaded = [expected_rows.loaded(row) for row in rows_read.to_pylist()]
        assert loaded == columns[: len(loaded)]
        # 1 is not 1.0 nor True; moments are compared above, by whatever class pyarrow gives.
        for row, of_model in zip(loaded, columns, strict=False):
            for name in ("id", "extra", "sender_extra", "user_attributes"):
                assert same(row.get(name), of_model.get(name))
    assert (len(table), len(mirrored)) == (len(rows), len(rows))
    assert mirrored["extra"].to_pylist() == table["extra"].to_pylist()
    if key == "messages":
        stored = sorted(mirror.conversation(42).messages, key=lambda each: each.id)
        # As columns, in which a sender of no fields is none.
        assert same([expected_rows.columns(each) for each in stored], columns)


NUMBERS = ["1e400", "-1.50E+400", "1e99999999999999999999", "-" + "9" * 5_000]
SENT = f'{{"deep":[{",".join(NUMBERS)}]}}'


def test_a_number_that_python_has_no_type_for_is_spelled_as_sent(face, scripted, mirror, backread):
    row = f'{{"id":42,"name":{NUMBERS[3]},"x":{SENT}}}'
    listed = service("users", [row])
    server = scripted(lambda asked: listed(asked) if asked.query else answer(200, row))
    client = face.client(server)
    one = face.call(client.users.get, 42)
    assert one.extra["name"] == one.extra["x"]["deep"][3] == Decimal(NUMBERS[3])
    sync(mirror, server)
    copies = [pickle.loads(pickle.dumps(one)), deepcopy(one), mirror.conversation(42).user]
    assert copies == [one] * 3
    as_dict = face.call(client.users.get, 42, as_dict=True)
    for extra in (as_dict, asdict(one)["extra"], *(each.extra for each in (one, *copies))):
        assert [str(number) for number in extra["x"]["deep"]] == NUMBERS
    for table in (client.users.list(), face.call(client.users.page), mirror.table("users")):
        assert f'"x":{SENT}' in table.to_arrow()["extra"].to_pylist()[0]
    done = backread("user", 42, "--base-url", server.url)
    assert f'"deep": [{", ".join(NUMBERS)}]' in done.out
