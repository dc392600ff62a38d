"""The reads against the mock: what comes back, what was sent, and what is refused unsent."""

import json
from typing import Any

import pytest

import backread
from backread import BackreadError, Listing
from backread.models import Page
from helpers import expected_rows
from helpers.api_rows import envelope, user
from helpers.scripted_server import answer


@pytest.mark.parametrize("key", ["users", "messages"])
def test_each_read_is_what_the_world_says(each_face, backread_server, key):
    world, client = backread_server.world, each_face.client(backread_server)
    if key == "users":
        source, whose = client.users, ()
        sent = [world.user(each) for each in world.user_ids()]
    else:
        lists = {each: world.message_ids(each) for each in world.user_ids()}
        user_id = max(lists, key=lambda each: len(lists[each]))
        source, whose = client.messages, (user_id,)
        sent = [world.message(user_id, each) for each in lists[user_id]]
    body = json.dumps({key: sent}).encode()
    models = [row.model for row in expected_rows.rows(body, key, *whose)]
    assert len(models) > 99
    assert each_face.collect(source.list(*whose)) == models
    assert each_face.call(source.list(*whose, as_dict=True).to_list) == sent
    for model, row in list(zip(models, sent, strict=True))[:9]:
        assert each_face.call(source.get, *whose, row["id"]) == model
        as_dict = each_face.call(source.get, *whose, row["id"], as_dict=True)
        assert (as_dict, list(as_dict)) == (row, list(row))
    page = each_face.call(source.page, *whose, 5, 3)
    assert page == Page(3, 5, len(sent), tuple(models[5:8]), key)
    envelope = {"limit": 3, "offset": 5, "total": len(sent), key: sent[5:8]}
    as_dict = each_face.call(source.page, *whose, 5, 3, as_dict=True)
    assert (as_dict, list(as_dict)) == (envelope, list(envelope))
    past = each_face.call(source.page, *whose, 2**63 - 1, 1)
    assert (past.items, bool(past), past.total) == ((), False, len(sent))


def test_an_envelope_is_as_sent_whatever_was_asked(face, scripted):
    """The limit that the server applied is shown, and rows that repeat are left alone."""
    sent = envelope([user(1), user(1)], limit=50, offset=7, total=None)
    client = face.client(scripted(answer(200, sent), answer(200, {"messages": []})))
    page = face.call(client.users.page)
    assert (page.limit, page.offset, page.total, len(page)) == (50, 7, None, 2)
    assert face.call(client.messages.page, 42) == Page(None, None, None, (), "messages")


@pytest.mark.parametrize("options", [{"user_agent": "reports/1.0"}, {}])
def test_only_gets_with_the_headers_of_the_interface_are_sent(each_face, scripted, options):
    def service(request: Any) -> bytes:
        *_, last = request.path.split("/")
        return answer(200, envelope([{"id": 1}], key=last) if request.query else {"id": 1})

    server = scripted(service)
    server.url += "/chat/api/"
    client = each_face.client(server, **options)
    each_face.call(client.users.get, 0)
    each_face.call(client.messages.get, 42, 2**63 - 1)
    each_face.call(client.users.page)
    each_face.call(client.messages.page, 42)
    each_face.collect(client.messages.all())
    assert [request.target for request in server.requests] == [
        "/chat/api/external/users/0",
        f"/chat/api/external/users/42/messages/{2**63 - 1}",
        "/chat/api/external/users?offset=0&limit=99",
        "/chat/api/external/users/42/messages?offset=0&limit=99",
        "/chat/api/external/users?offset=0&limit=99",
        "/chat/api/external/users/1/messages?offset=0&limit=99",
    ]
    agent = options.get("user_agent", f"backread/{backread.__version__}")
    expected = ["application/vnd.example.v1+json", "Bearer scripted-secret", agent]
    for request in server.requests:
        sent = {name: request.headers[name] for name in ("accept", "authorization", "user-agent")}
        assert (request.method, [*sent.values()]) == ("GET", expected)
        assert request.headers.keys() - sent == {"accept-encoding", "host"}


NUMBERS = {
    "offset": lambda client, number: client.users.page(number),
    "limit": lambda client, number: client.users.page(limit=number),
    "max_items": lambda client, number: client.messages.all(max_items=number),
    "user_id of a list": lambda client, number: client.messages.list(number),
    "message_id": lambda client, number: client.messages.get(1, number),
    "users": lambda client, number: client.messages.all(users=[1, number]),
    "users as a whole": lambda client, number: client.messages.all(users=str(number)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_wrong_number_is_an_error_that_names_it_and_nothing_is_sent(face, scripted, name):
    server = scripted(lambda request: answer(200, user(42)))
    client = face.client(server)
    wrong = [(-1, ValueError), ("10", TypeError), (True, TypeError), (1.0, TypeError)]
    if name == "limit":
        wrong += [(0, ValueError), (100, ValueError)]
    for number, error in wrong:
        expected = TypeError if name == "users as a whole" else error
        with pytest.raises(expected, match=name.split()[0]) as caught:
            face.call(NUMBERS[name], client, number)
        assert not isinstance(caught.value, BackreadError)
    assert server.requests == []


def test_a_client_is_closed_at_the_end_of_with_and_says_so(each_face, scripted):
    server = scripted()
    client = each_face.client(server)
    if each_face.name == "async":
        assert each_face.call(client.__aenter__) is client
        each_face.call(client.__aexit__, None, None, None)
    else:
        with client as entered:
            assert entered is client
    for closed in (client, client.with_options(timeout=1)):
        with pytest.raises(BackreadError, match="closed"):
            each_face.call(closed.users.get, 42)
        with pytest.raises(BackreadError, match="closed"):
            each_face.collect(closed.users.list())
    assert server.requests == []


class Indexed:
    """What numpy's integers are to Python."""

    def __index__(self) -> int:
        return 42


@pytest.mark.parametrize("name", sorted(NUMBERS.keys() - {"users as a whole"}))
def test_a_number_is_sent_as_its_digits(face, scripted, name):
    server = scripted(lambda request: answer(200, {"id": 42, "users": [], "messages": []}))
    client = face.client(server)
    result = face.call(NUMBERS[name], client, Indexed())
    if isinstance(result, Listing):
        face.collect(result)
    assert name == "max_items" or any("42" in each.target for each in server.requests)
