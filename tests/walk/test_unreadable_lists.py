"""Lists that cannot be read: each costs itself alone, and the next sync reads it first."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from backread import (
    AuthenticationError,
    DeadlineExceededError,
    IncompleteError,
    IncompleteWarning,
    PermissionDeniedError,
    ServerError,
)
from helpers.api_rows import message, paged, user, users
from helpers.scripted_server import Request, answer

USERS = 60


class Service:
    """Users with two messages each, of which some lists are broken."""

    def __init__(self, count: int = USERS) -> None:
        self.broken: dict[int, Callable[[Request], bytes]] = {}
        self.messages: dict[int, list[dict[str, Any]]] = {
            number: [message(10 * number), message(10 * number + 1)]
            for number in range(1, count + 1)
        }
        self.users = users(count)

    def __call__(self, request: Request) -> bytes:
        parts = request.path.split("/")
        if parts[-1] == "users":
            return paged(self.users)(request)
        number = int(parts[3])
        if number in self.broken:
            return self.broken[number](request)
        return paged(self.messages[number], key="messages")(request)


BREAKS: dict[str, Callable[[Request], bytes]] = {
    "500": lambda request: answer(500, "no"),
    "403": lambda request: answer(403, "no"),
    "400": lambda request: answer(400, "no"),
    "truncated JSON": lambda request: answer(200, '{"limit": 99, "messages": [{"id": 1'),
    "no page": lambda request: answer(200, "[]"),
    "a body that ends early": lambda request: (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
    ),
}


@pytest.fixture
def service() -> Service:
    service = Service()
    service.broken = dict(zip(range(11, 17), BREAKS.values(), strict=True))
    return service


def client_of(face: Any, scripted: Any, service: Service, **options: Any) -> Any:
    return face.client(scripted(service), **{"max_retries": 0, "max_concurrency": 4, **options})


def test_messages_all_goes_on_and_warns_once(each_face, scripted, service):
    listing = client_of(each_face, scripted, service).messages.all()
    with pytest.warns(IncompleteWarning) as caught:
        read = each_face.collect(listing)
    assert len(caught) == 1
    assert "6 lists of messages could not be read, of user 11, 12, 13, 14, 15, 16" in str(
        caught[0].message
    )
    assert sorted(one.id for one in read) == [
        each["id"] for number in service.messages if number not in service.broken
        for each in service.messages[number]
    ]  # fmt: skip
    report = listing.report
    assert report.unread_users == report.uncertified_users == (11, 12, 13, 14, 15, 16)
    assert report.certificate == "uncertified"
    assert "those of 6 could not be read" in report.reason


def test_the_warning_points_to_the_line_that_reads(scripted, service):
    server = scripted(service)
    with server.client(max_retries=0) as client:
        with pytest.warns(IncompleteWarning) as of_loop:
            for _ in client.messages.all():
                pass
        with pytest.warns(IncompleteWarning) as of_list:
            client.messages.all().to_list()
    assert {of_loop[0].filename, of_list[0].filename} == {__file__}


def test_a_strict_listing_is_incomplete(face, scripted, service):
    listing = client_of(face, scripted, service).messages.all(strict=True)
    warnings.simplefilter("error")
    with pytest.raises(IncompleteError) as caught:
        face.collect(listing)
    assert caught.value.report.unread_users == (11, 12, 13, 14, 15, 16)


def test_columns_warn_too(each_face, scripted, service):
    pytest.importorskip("pyarrow")
    client = client_of(each_face, scripted, service)
    with pytest.warns(IncompleteWarning, match="6 lists"):
        table = each_face.call(client.messages.all().to_arrow)
    assert table.num_rows == 2 * (USERS - 6)
    warnings.simplefilter("error")
    with pytest.raises(IncompleteWarning):
        each_face.call(client.messages.all().to_arrow)


def test_a_service_that_answers_nobody_is_no_bad_list(face, scripted):
    """Not one list is given up: the error of the first that failed is raised."""
    service = Service()
    down = False

    def failing(request: Request) -> bytes:
        nonlocal down
        down |= "messages" in request.path
        return answer(500, "down") if down else service(request)

    client = face.client(scripted(failing), max_retries=0)
    with pytest.raises(ServerError):
        face.collect(client.messages.all())


def test_fifty_lists_in_a_row_are_the_services_fault(face, scripted):
    service = Service(120)
    service.broken = dict.fromkeys(range(1, 121), BREAKS["403"])
    server = scripted(service)
    client = face.client(server, max_retries=0, max_concurrency=4)
    with pytest.raises(PermissionDeniedError):
        face.collect(client.messages.all())
    assert len([one for one in server.requests if "messages" in one.path]) < 60


def test_fifty_lists_in_a_row_do_not_stop_every_sync(scripted, mirror):
    """Those that a sync gave up say nothing new to the next one, which resumes it."""
    pytest.importorskip("duckdb")
    service = Service(130)
    service.broken = dict.fromkeys(range(1, 111), BREAKS["403"])
    client = scripted(service).client(max_concurrency=4)
    for _ in range(2):
        with pytest.raises(PermissionDeniedError):
            mirror.sync(client)
    report = mirror.sync(client)
    assert report.lists_by_kind == {"unread": 110, "whole": 20}
    assert len(mirror.sql("FROM messages").fetchall()) == 40


def test_a_wrong_secret_ends_the_call_at_once(face, scripted):
    service = Service()
    service.broken = {1: lambda request: answer(401, "no")}
    with pytest.raises(AuthenticationError):
        face.collect(client_of(face, scripted, service).messages.all())


@pytest.mark.parametrize("status", [503, 429, 403])
def test_one_failure_or_a_refusal_of_the_check_is_no_outage(face, scripted, status):
    """A 503 is answered once, the others whenever it is asked whether the service is up."""
    service = Service(4)
    service.broken = {2: BREAKS["500"]}
    failures = iter(range(1 if status == 503 else 9))

    def failing(request: Request) -> bytes:
        if request.query.get("limit") == "1" and next(failures, None) is not None:
            return answer(status, b"", {"Retry-After": "20"})
        return service(request)

    listing = face.client(scripted(failing), max_retries=0, max_concurrency=1).messages.all()
    with pytest.warns(IncompleteWarning):
        assert len(face.collect(listing)) == 6
    assert listing.report.unread_users == (2,)


@pytest.mark.parametrize("told", [answer(500), answer(200, user(2))])
def test_a_list_that_is_not_found_is_unread_unless_its_user_is_gone(face, scripted, told):
    service = Service(4)
    service.broken = {2: lambda request: answer(404)}

    def failing(request: Request) -> bytes:
        return told if request.path.endswith("/users/2") else service(request)

    listing = face.client(scripted(failing), max_retries=0).messages.all()
    with pytest.warns(IncompleteWarning, match="of user 2;"):
        assert len(face.collect(listing)) == 6
    assert listing.report.uncertified_users == listing.report.unread_users == (2,)


def test_the_mirror_keeps_what_it_had_and_tries_again_first(scripted, mirror):
    pytest.importorskip("duckdb")
    service = Service()
    server = scripted(service)
    client = server.client(max_retries=0)

    def rows(query: str) -> list[tuple[Any, ...]]:
        return mirror.sql(query).fetchall()

    assert mirror.sync(client).unread_users == ()
    service.broken = dict(zip(range(11, 17), BREAKS.values(), strict=True))
    service.users[39] = user(40, name="moved")
    report = mirror.sync(client)
    assert report.unread_users == (11, 12, 13, 14, 15, 16)
    assert report.lists_by_kind["unread"] == 6
    held = "SELECT count(*) FROM messages WHERE deleted_at IS NULL"
    assert rows(held) == [(2 * USERS,)]
    assert rows("SELECT name FROM users WHERE id = 40") == [("moved",)]
    reasons = rows("SELECT user_id, reason FROM lists WHERE kind = 'unread' ORDER BY 1")
    assert [user_id for user_id, _ in reasons] == [11, 12, 13, 14, 15, 16]
    assert all(reason.startswith("it could not be read: GET") for _, reason in reasons)
    service.broken = {}
    before = len(server.requests)
    report = mirror.sync(client)
    assert report.unread_users == ()
    lists = [one.path for one in server.requests[before:] if "messages" in one.path]
    # Sixteen are read side by side.
    first = {int(path.split("/")[3]) for path in lists[:16]}
    assert first >= {11, 12, 13, 14, 15, 16}
    assert rows(held) == [(2 * USERS,)]


def test_a_row_whose_check_fails_stays_as_it_is(scripted, mirror):
    pytest.importorskip("duckdb")
    service = Service(110)

    def failing(request: Request) -> bytes:
        return answer(500) if request.path.endswith("/users/7") else service(request)

    client = scripted(failing).client(max_retries=0)
    mirror.sync(client)
    del service.users[6]
    assert mirror.sync(client, mode="full").certificate == "linked"
    assert mirror.sql("SELECT deleted_at FROM users WHERE id = 7").fetchall() == [(None,)]


def test_the_deadline_is_the_error_if_it_passes_while_the_service_is_asked(face, scripted):
    def service(request: Request) -> Any:
        return server.stall() if request.path.endswith("/users") else answer(500)

    server = scripted(service)
    client = face.client(server, max_retries=0, max_concurrency=1, deadline=0.5)
    with pytest.raises(DeadlineExceededError):
        face.collect(client.messages.all(users=[7]))


def test_an_unreadable_list_that_is_left_of_a_run_does_not_stop_it(scripted, mirror):
    """As after a kill near the end, or in nights of a small budget."""
    pytest.importorskip("duckdb")
    service = Service(20)
    service.broken[7] = lambda request: answer(500)
    client = scripted(service).client(max_retries=0, max_concurrency=1)
    first = mirror.sync(client, max_requests=25)
    # The list is all that is left.
    assert (first.partial, first.lists_left, first.unread_users) == (True, 1, (7,))
    second = mirror.sync(client)
    assert (second.state, second.run_id, second.unread_users) == ("finished", first.run_id, (7,))
