"""The four reads against the mock: what comes back, what was sent, and what is refused unsent."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from backread import BackreadError
from backread.models import Message, OperatorSender, Page, User, UserAttribute, UserSender
from helpers.api_rows import envelope, message, user
from helpers.scripted_server import answer


def instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").astimezone(UTC)


def expected_user(row: dict[str, Any]) -> User:
    return User(
        row["id"],
        row["name"],
        row["email"],
        row["reference"],
        instant(row["created_at"]),
        instant(row["updated_at"]),
        instant(row["online_at"]),
        row["last_url"],
        tuple(UserAttribute(one["name"], one["value"]) for one in row["user_attributes"]),
    )


def expected_message(user_id: int, row: dict[str, Any]) -> Message:
    sender = {"user": UserSender, "operator": OperatorSender}[row["sender_type"]]
    return Message(
        **{
            **row,
            "created_at": instant(row["created_at"]),
            "sender": sender(**row["sender"]),
            "user_id": user_id,
        }
    )


def longest(world: Any) -> tuple[int, list[int]]:
    lists = {user_id: world.message_ids(user_id) for user_id in world.user_ids()}
    return max(lists.items(), key=lambda entry: len(entry[1]))


def test_each_user_is_what_the_world_says(each_face, backread_server):
    world, client = backread_server.world, each_face.client(backread_server)
    for user_id in world.user_ids()[:20]:
        row = world.user(user_id)
        assert each_face.call(client.users.get, user_id) == expected_user(row)
        as_dict = each_face.call(client.users.get, user_id, as_dict=True)
        assert as_dict == row
        assert list(as_dict) == list(row)


def test_a_list_has_every_user_once_and_in_order(each_face, backread_server):
    world, client = backread_server.world, each_face.client(backread_server)
    listing = client.users.list()
    assert each_face.collect(listing) == [
        expected_user(world.user(one)) for one in world.user_ids()
    ]
    rows = each_face.call(client.users.list(as_dict=True).to_list)
    assert rows == [world.user(one) for one in world.user_ids()]


def test_a_list_has_every_message_once_and_in_order(each_face, backread_server):
    world, client = backread_server.world, each_face.client(backread_server)
    user_id, message_ids = longest(world)
    assert len(message_ids) > 99
    expected = [world.message(user_id, one) for one in message_ids]
    assert each_face.collect(client.messages.list(user_id)) == [
        expected_message(user_id, row) for row in expected
    ]
    assert each_face.collect(client.messages.list(user_id, as_dict=True)) == expected


def test_a_page_is_the_response_as_sent(each_face, backread_server):
    world, client = backread_server.world, each_face.client(backread_server)
    user_ids = world.user_ids()
    page = each_face.call(client.users.page, 5, 3)
    assert (page.limit, page.offset, page.total) == (3, 5, len(user_ids))
    assert page.items == tuple(expected_user(world.user(one)) for one in user_ids[5:8])
    assert list(page) == list(page.items)
    row = each_face.call(client.users.page, 5, 3, as_dict=True)
    assert row == {
        "limit": 3,
        "offset": 5,
        "total": len(user_ids),
        "users": [world.user(one) for one in user_ids[5:8]],
    }
    assert list(row) == ["limit", "offset", "total", "users"]


def test_a_page_of_messages_knows_whose_they_are(each_face, backread_server):
    world, client = backread_server.world, each_face.client(backread_server)
    user_id, message_ids = longest(world)
    page = each_face.call(client.messages.page, user_id, 1, 2)
    assert page.total == len(message_ids)
    assert [(one.user_id, one.id) for one in page] == [(user_id, one) for one in message_ids[1:3]]
    row = each_face.call(client.messages.page, user_id, 1, 2, as_dict=True)
    assert row["messages"] == [world.message(user_id, one) for one in message_ids[1:3]]


def test_a_page_past_the_end_is_empty_and_false(face, backread_server):
    client = face.client(backread_server)
    page = face.call(client.users.page, 2**63 - 1, 1)
    assert page.items == ()
    assert not page
    assert page.total == backread_server.world.total_users


def test_a_page_is_exactly_one_request_of_99_rows(face, scripted):
    rows = [user(1)]
    server = scripted(
        answer(200, envelope(rows, total=500)),
        answer(200, envelope([message(1)], key="messages", total=500)),
    )
    client = face.client(server)
    assert len(face.call(client.users.page)) == 1
    assert len(face.call(client.messages.page, 42)) == 1
    assert [(one.path, one.query) for one in server.requests] == [
        ("/external/users", {"offset": "0", "limit": "99"}),
        ("/external/users/42/messages", {"offset": "0", "limit": "99"}),
    ]


def test_only_gets_with_the_headers_of_the_interface_are_sent(each_face, scripted):
    def service(request: Any) -> bytes:
        if request.query:
            key = "messages" if request.path.endswith("messages") else "users"
            return answer(200, envelope([{"id": 1}], key=key))
        return answer(200, {"id": 1})

    server = scripted(service)
    client = each_face.client(server, user_agent="reports/1.0")
    each_face.call(client.users.get, 42)
    each_face.call(client.messages.get, 42, 7)
    each_face.collect(client.users.list())
    each_face.collect(client.messages.list(42))
    each_face.collect(client.messages.all())
    assert {one.path for one in server.requests} == {
        "/external/users",
        "/external/users/42",
        "/external/users/42/messages",
        "/external/users/42/messages/7",
        "/external/users/1/messages",
    }
    for request in server.requests:
        assert request.method == "GET"
        assert request.headers["authorization"] == "Bearer scripted-secret"
        assert request.headers["accept"] == "application/vnd.example.v1+json"
        assert request.headers["user-agent"] == "reports/1.0"
        assert "content-length" not in request.headers
        assert "referer" not in request.headers
        assert request.query.keys() <= {"offset", "limit"}


def test_the_user_agent_names_the_package_by_default(face, scripted):
    import backread

    server = scripted(answer(200, user(42)))
    face.call(face.client(server).users.get, 42)
    assert server.requests[0].headers["user-agent"] == f"backread/{backread.__version__}"


@pytest.mark.parametrize("prefix", ["/chat/api", "/chat/api/", "/"])
def test_a_path_in_the_base_url_is_kept(face, scripted, prefix):
    server = scripted(answer(200, user(42)))
    client = face.kind(server.url + prefix, server.secret, server.vendor)
    try:
        face.call(client.users.get, 42)
    finally:
        face.close(client)
    assert server.requests[0].path == f"{prefix.rstrip('/')}/external/users/42"


def test_the_largest_id_is_sent_as_it_is(face, scripted):
    server = scripted(answer(200, user(2**63 - 1)), answer(200, user(0)))
    client = face.client(server)
    assert face.call(client.users.get, 2**63 - 1).id == 2**63 - 1
    assert face.call(client.users.get, 0).id == 0
    assert server.requests[0].path == f"/external/users/{2**63 - 1}"


OUT_OF_RANGE: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "limit 0": lambda client: lambda: client.users.page(limit=0),
    "limit 100": lambda client: lambda: client.users.page(limit=100),
    "offset -1": lambda client: lambda: client.users.page(-1),
    "user -1": lambda client: lambda: client.users.get(-1),
    "user of a message": lambda client: lambda: client.messages.get(-1, 1),
    "message -1": lambda client: lambda: client.messages.get(1, -1),
    "user of a list": lambda client: lambda: client.messages.list(-1),
    "page_size 0": lambda client: lambda: client.users.list(page_size=0),
    "page_size of all": lambda client: lambda: client.messages.all(page_size=100),
    "max_items -1": lambda client: lambda: client.users.list(max_items=-1),
    "a user of all": lambda client: lambda: client.messages.all(users=[1, -1]),
}

OF_ANOTHER_TYPE: dict[str, Callable[[Any], Callable[[], Any]]] = {
    "limit True": lambda client: lambda: client.users.page(limit=True),
    "limit '10'": lambda client: lambda: client.users.page(limit="10"),
    "user True": lambda client: lambda: client.users.get(True),
    "user '42'": lambda client: lambda: client.users.get("42"),
    "message '1'": lambda client: lambda: client.messages.get(42, "1"),
    "user of a list": lambda client: lambda: client.messages.list("42"),
    "max_items '5'": lambda client: lambda: client.users.list(max_items="5"),
    "users '42'": lambda client: lambda: client.messages.all(users="42"),
    "a user of all": lambda client: lambda: client.messages.all(users=["42"]),
}


@pytest.mark.parametrize(
    ("name", "call", "error"),
    [
        *((name, call, ValueError) for name, call in OUT_OF_RANGE.items()),
        *((name, call, TypeError) for name, call in OF_ANOTHER_TYPE.items()),
    ],
)
def test_a_wrong_number_is_an_error_that_names_it_and_nothing_is_sent(
    face, scripted, name, call, error
):
    server = scripted(lambda request: answer(200, user(42)))
    with pytest.raises(error) as caught:
        face.call(call(face.client(server)))
    assert server.requests == []
    assert not isinstance(caught.value, BackreadError)
    argument = name.split()[0].removeprefix("a").replace("message", "message_id")
    assert argument in str(caught.value)


def test_a_listing_sends_nothing_until_it_is_read(each_face, scripted):
    server = scripted(lambda request: answer(200, envelope([user(1)])))
    listing = each_face.client(server).users.list()
    assert "users" in repr(listing)
    assert "users" in listing._repr_html_()
    assert listing.report.requests == 0
    assert listing.report.reason == "not read yet"
    assert server.requests == []


def test_a_closed_client_says_so(each_face, scripted):
    server = scripted(lambda request: answer(200, user(42)))
    client = each_face.client(server)
    sharing = client.with_options(timeout=1)
    each_face.close(client)
    for closed in (client, sharing):
        with pytest.raises(BackreadError, match="closed"):
            each_face.call(closed.users.get, 42)
        with pytest.raises(BackreadError, match="closed"):
            each_face.collect(closed.users.list())
    each_face.close(client)
    assert server.requests == []


def test_clients_are_context_managers(scripted):
    import asyncio

    from backread import AsyncClient, Client

    server = scripted(lambda request: answer(200, user(42)))
    with Client(server.url, server.secret, server.vendor) as client:
        assert client.users.get(42).id == 42
    with pytest.raises(BackreadError, match="closed"):
        client.users.get(42)

    async def main() -> None:
        async with AsyncClient(server.url, server.secret, server.vendor) as client:
            assert (await client.users.get(42)).id == 42
        with pytest.raises(BackreadError, match="closed"):
            await client.users.get(42)

    asyncio.run(main())


def test_the_envelope_is_as_sent_whatever_was_asked(face, scripted):
    """The limit that the server applied is shown, and rows that repeat are left alone."""
    server = scripted(
        answer(200, envelope([user(1), user(1)], limit=50, offset=7, total=None)),
        answer(200, {"users": []}),
    )
    client = face.client(server)
    page = face.call(client.users.page, 0, 99)
    assert (page.limit, page.offset, page.total, len(page)) == (50, 7, None, 2)
    assert face.call(client.users.page) == Page(None, None, None, ())
