"""What is between a client and its service: caches, gateways that forget it, logins, proxies."""

import json

import pytest

from backread import (
    BadRequestError,
    DecodeError,
    NotFoundError,
    PermissionDeniedError,
    ServerError,
    TransportError,
)
from helpers.api_rows import envelope, ids, message, paged, user, users
from helpers.scripted_server import Request, answer

HTML = b"<html><head><title>404</title></head><body>404 page not found</body></html>"


@pytest.mark.parametrize(("age", "certificate"), [("0", "linked"), ("30", "uncertified")])
def test_users_list_is_uncertified_over_cached_pages(face, scripted, age, certificate):
    plain = paged(users(150))

    def service(request: Request) -> bytes:
        body = json.loads(plain(request).partition(b"\r\n\r\n")[2])
        return answer(200, body, {"Age": age if body["offset"] else "0"})

    listing = face.client(scripted(service)).users.list()
    assert ids(face.collect(listing)) == list(range(1, 151))
    assert listing.report.certificate == certificate
    if certificate == "uncertified":
        assert "cache" in listing.report.reason


class Gateway:
    """A gateway before users 1 to 9 with a message each, which at times forgets the service."""

    def __init__(self, *forgets: str) -> None:
        self.forgets = [*forgets]
        self.gone: set[int] = set()

    def __call__(self, request: Request) -> bytes:
        if self.forgets and request.path == self.forgets[0]:
            self.forgets.pop(0)
            return answer(404, HTML, content_type="text/html")
        rows = [row for row in users(9) if row["id"] not in self.gone]
        if request.path.endswith("/messages"):
            number = int(request.path.split("/")[-2])
            if number in self.gone:
                return answer(404, HTML, content_type="text/html")
            return answer(200, envelope([message(10 * number)], key="messages"))
        return paged(rows)(request)


def test_messages_all_counts_users_lost_by_a_gateway_as_unread(face, scripted):
    forgets = ("/external/users/3/messages", "/external/users/3")
    listing = face.client(scripted(Gateway(*forgets))).messages.all()
    with pytest.warns(match="user 3"):
        face.collect(listing)
    assert listing.report.unread_users == (3,)
    assert "gone" not in listing.report.reason


def test_messages_all_tells_deleted_users_from_gateway_404s(face, scripted):
    service = Gateway()

    def respond(request: Request) -> bytes:
        shown = service(request)
        # Gone once they were listed.
        service.gone = {3}
        return shown

    listing = face.client(scripted(respond)).messages.all()
    assert len(face.collect(listing)) == 8
    assert listing.report.unread_users == ()
    assert "1 users were gone" in listing.report.reason


def test_sync_of_given_users_does_not_delete_on_a_gateway_404(scripted, mirror):
    pytest.importorskip("duckdb")
    service = Gateway()
    server = scripted(service)
    client = server.client()
    mirror.sync(client)
    service.forgets = ["/external/users/3"]
    mirror.sync(client, users=[3])
    live = "SELECT count(*) FROM {} WHERE deleted_at IS NULL"
    assert mirror.sql(live.format("users")).fetchall() == [(9,)]
    service.forgets = ["/external/users/3", "/external/users"]
    assert mirror.sync(client, users=[3]).unread_users == (3,)
    assert mirror.sql(live.format("messages")).fetchall() == [(9,)]
    service.gone = {3}
    report = mirror.sync(client, users=[3])
    assert report.unknown_users == (3,)
    assert mirror.sql(live.format("messages")).fetchall() == [(8,)]


def test_redirect_to_a_login_page_is_an_error_and_not_retried(face, scripted):
    def service(request: Request) -> bytes:
        if request.path.startswith("/accounts"):
            return answer(200, b"<!doctype html><title>Log in</title>", content_type="text/html")
        return answer(302, b"", {"location": "/accounts/login/?next=" + request.path})

    server = scripted(service)
    error = face.failure(server, DecodeError, "redirect to /accounts/login/")
    assert len(error.attempts) == len(server.requests) == 2


def test_status_511_is_an_error_and_not_retried(face, scripted):
    server = scripted(lambda request: answer(511, HTML, content_type="text/html"))
    face.failure(server, ServerError, "this network wants a login")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind", "body", "words"),
    [
        (403, PermissionDeniedError, {"detail": "Invalid token."}, '"Invalid token."'),
        (422, BadRequestError, {"message": "limit\n\u0007must be < 50"}, "must be < 50"),
        (422, BadRequestError, {"detail": [{"loc": ["limit"], "msg": "too large"}]}, "too large"),
        (503, ServerError, {"errors": [{"title": "Closed until 9:00"}]}, "Closed until 9:00"),
        (404, NotFoundError, {"error": True, "id": "text"}, None),
        (400, BadRequestError, {"error": "x" * 500}, '"' + "x" * 120 + '"'),
    ],
)
def test_error_quotes_the_message_of_its_json_body(face, scripted, status, kind, body, words):
    text = str(face.failure(scripted(answer(status, body)), kind, max_retries=0))
    assert text.isprintable()
    assert ("it says" in text) == (words is not None)
    assert (words or "") in text


def test_redirect_to_http_stays_on_https_at_the_same_host_and_port_only(face, authority, scripted):
    from helpers.keepalive_server import Handler
    from helpers.tls_server import SecureServer

    other = scripted(lambda request: answer(200, user(42)))

    class Redirecting(Handler):
        def do_GET(self) -> None:  # noqa: N802
            if self.path.endswith("/"):
                self.path = self.path.rstrip("/")
                super().do_GET()
                return
            port = other.port if self.path.endswith("/43") else self.server.server_port
            self.send_response(307)
            self.send_header("location", f"http://localhost:{port}{self.path}/")
            self.send_header("content-length", "0")
            self.end_headers()

    with SecureServer(authority.context("localhost")) as server:
        server.RequestHandlerClass = Redirecting
        client = face.client(server, ca_bundle=authority.file)
        assert face.call(client.users.get, 42).id == 42
        assert None not in server.versions
        with pytest.raises(TransportError, match="another origin"):
            face.call(client.users.get, 43)
    assert other.requests == []
