"""Responses that cannot be read: which call raises a DecodeError, its place, and what it advises.

What is accepted as JSON is tested in src/core/decode.
"""

import json
import time
from typing import Any

import pytest

from backread import DecodeError, IncompleteError
from helpers.api_rows import envelope, ids, user, users
from helpers.scripted_server import answer

READS = {
    "user": lambda face, client, **form: face.call(client.users.get, 42, **form),
    "message": lambda face, client, **form: face.call(client.messages.get, 42, 7, **form),
    "page": lambda face, client, **form: face.call(client.users.page, 7, 5, **form),
    "list": lambda face, client, **form: face.collect(client.users.list(**form)),
}

NESTED = "[" * 200_000 + "]" * 200_000
DEEP = f'{{"id": 42, "x": {NESTED}}}'


def failure(face: Any, client: Any, read: str, **form: Any) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        READS[read](face, client, **form)
    error = caught.value
    assert len(error.snippet) <= 200
    assert [one.status for one in error.attempts] == [200]
    return error


@pytest.mark.parametrize(
    ("odd", "path", "snippet", "why"),
    [
        (json.dumps(user("42")), ".id", '"42"', "the row at offset 3 has no integer id"),
        (json.dumps(user(2**63)), ".id", f"{2**63}", "the row at offset 3 has no integer id"),
        ('{"name": "Ada"}', ".id", "Ada", "the row at offset 3 has no integer id"),
        ('[{"id": 1}]', "", '[{"id": 1}]', "the row at offset 3 is not an object"),
        (DEEP, "", '"id": 42', "the row with id 42 at offset 3 is nested too deep"),
    ],
    ids=lambda value: value[:20],
)
def test_a_row_that_is_no_record_fails_its_page_and_costs_a_list_that_row(
    face, scripted, odd, path, snippet, why
):
    page = json.dumps(envelope([*users(3), 0, *users(6)[4:]])).replace(", 0, ", f", {odd}, ")
    client = face.client(scripted(lambda asked: answer(200, page if asked.query else odd)))
    error = failure(face, client, "page")
    assert error.path == f"$.users[3]{path}"
    for part in ("/external/users?offset=7&limit=5: ", f"{error.path}: ", "as_dict=True"):
        assert part in str(error)
    assert snippet in error.snippet
    if path:
        for read in ("user", "message"):
            assert failure(face, client, read).path == f"$.{path[1:]}"
            assert READS[read](face, client, as_dict=True) == json.loads(odd)
    listing, dicts = client.users.list(), client.users.list(as_dict=True)
    assert ids(face.collect(listing)) == [1, 2, 3, 5, 6]
    given = [] if odd == DEEP else [json.loads(odd)]
    assert face.collect(dicts) == [*users(3), *given, *users(6)[4:]]
    for report in (listing.report, dicts.report):
        assert report.certificate == "uncertified"
        assert why in report.reason
    for as_dict in (False, True):
        with pytest.raises(IncompleteError, match=why):
            face.collect(client.users.list(strict=True, as_dict=as_dict))


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize(
    ("body", "path", "reads"),
    [
        ("<!doctype html><p>Sign in</p>", "$", READS),
        ("[]", "$", ("user", "message", "list")),
        ("null", "$", ("user", "message", "list")),
        (NESTED, "$", ("user", "page", "list")),
        ('{"messages": []}', "$.users", ("list",)),
        ('{"users": null}', "$.users", ("list",)),
        ('{"users": "none"}', "$.users", ("list",)),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_what_is_not_requested_is_a_decode_error_of_every_form(
    face, scripted, body, path, reads, as_dict
):
    client = face.client(scripted(lambda request: answer(200, body)), max_retries=0)
    for read in reads:
        error = failure(face, client, read, as_dict=as_dict)
        assert error.path == path
        assert body[:3] in error.snippet
        assert "as_dict" not in str(error)


@pytest.mark.parametrize("as_dict", [True, False])
def test_nesting_is_read_as_deep_as_json_may_go(face, scripted, as_dict):
    deepest = "[" * 126 + "]" * 126
    bodies = [f'{{"id": 42, "x": {deepest}}}', f'{{"id": 42, "x": [{deepest}]}}', DEEP]
    client = face.client(scripted(*(answer(200, body) for body in bodies)))
    read = face.call(client.users.get, 42, as_dict=as_dict)
    assert (read if as_dict else read.extra)["x"] == json.loads(deepest)
    for _ in range(2):
        with pytest.raises(DecodeError, match="too deep"):
            face.call(client.users.get, 42, as_dict=as_dict)


def test_many_keys_are_read_in_linear_time(face, scripted):
    keys = ", ".join(f'"key {number}": {number}, "name": {number}' for number in range(20_000))
    client = face.client(scripted(lambda request: answer(200, f'{{"id": 42, {keys}}}')))
    began = time.process_time()
    for as_dict in (False, True):
        face.call(client.users.get, 42, as_dict=as_dict)
    assert time.process_time() - began < 5
