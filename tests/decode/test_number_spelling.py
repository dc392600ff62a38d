"""A number beyond the range of a float is the same text wherever it is written."""

import json
import pickle
from copy import deepcopy
from dataclasses import asdict
from decimal import Decimal

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from helpers.api_rows import envelope, message, user
from helpers.mirrors import sync
from helpers.scripted_server import Request, answer

NUMBERS = ["1e400", "-1.50E+400", "1e99999999999999999999"]
SENT = f'{{"deep":[{",".join(NUMBERS)}]}}'


def service(request: Request) -> bytes:
    """A user and a message with these numbers in an undocumented field."""
    row = message(10, x=0) if "messages" in request.path else user(1, x=0)
    *_, last = request.path.split("/")
    body = json.dumps(envelope([row], key=last) if last in ("users", "messages") else row)
    return answer(200, body.replace('"x": 0', f'"x": {SENT}'))


def spelled(extra) -> list[str]:
    return [str(each) for each in extra["x"]["deep"]]


def test_a_number_that_no_float_holds_is_spelled_as_sent(each_face, scripted, mirror):
    server = scripted(service)
    client = each_face.client(server)
    one = each_face.call(client.users.get, 1)
    assert spelled(one.extra) == NUMBERS
    assert one.extra["x"]["deep"][:2] == [Decimal(each) for each in NUMBERS[:2]]
    for copy in (pickle.loads(pickle.dumps(one)), deepcopy(one)):
        assert copy == one
        assert spelled(copy.extra) == spelled(asdict(copy)["extra"]) == NUMBERS
    assert spelled(each_face.call(client.messages.get, 1, 10, as_dict=True)) == NUMBERS
    extra = f'{{"x":{SENT}}}'
    for listing in (client.users.list(), client.messages.all()):
        assert each_face.call(listing.to_arrow)["extra"].to_pylist() == [extra]
    page = each_face.call(client.users.page)
    assert page.to_arrow()["extra"].to_pylist() == [extra]
    sync(mirror, server)
    assert mirror.sql("SELECT extra FROM users UNION SELECT extra FROM messages").fetchall() == [
        (extra,)
    ]
    [stored] = mirror.conversation(1).messages
    assert spelled(stored.extra) == NUMBERS


@pytest.mark.parametrize("arguments", [("users",), ("user", 1), ("messages", "--all")])
def test_json_lines_have_a_number_that_no_float_holds_as_sent(
    backread, scripted, monkeypatch, arguments
):
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(service).url)
    assert f'"deep": [{", ".join(NUMBERS)}]' in backread(*arguments).out
