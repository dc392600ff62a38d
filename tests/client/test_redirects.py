"""Redirects: followed within the origin, five at most; the secret never leaves it."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backread import StatusError, TransportError
from helpers.api_rows import user
from helpers.scripted_server import answer

FINE = answer(200, user(42))


def moved(location: str, status: int = 302) -> bytes:
    return answer(status, b"", {"location": location})


def leads_to(target: str, other: Any = None) -> Callable[[Any], bytes]:
    """A service that redirects to the target, with its own port and another's in it."""

    def respond(request: Any) -> bytes:
        port = request.headers["host"].rpartition(":")[2]
        if request.path == "/arrived":
            return FINE
        return moved(target.format(port=port, other=other and other.port))

    return respond


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_within_the_origin_is_followed(face, scripted, status):
    server = scripted(moved("/elsewhere/users/42", status), FINE)
    assert face.get(server).id == 42
    first, second = server.requests
    assert second.path == "/elsewhere/users/42"
    for name in ("authorization", "accept", "user-agent"):
        assert second.headers[name] == first.headers[name]
    assert "referer" not in second.headers
    assert second.method == "GET"


def test_five_redirects_are_followed_and_a_sixth_is_refused(face, scripted):
    hops = [moved(f"/hop/{number}") for number in range(1, 7)]
    five, six = scripted(*hops[:5], FINE), scripted(*hops, FINE)
    assert face.get(five).id == 42
    face.failure(six, TransportError, "5 redirects")
    assert len(five.requests) == len(six.requests) == 6


@pytest.fixture
def other(scripted: Any) -> Iterator[Any]:
    """Another origin, which is sent nothing."""
    server = scripted(lambda request: FINE)
    yield server
    assert server.requests == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin_is_refused_and_named(face, scripted, other, status):
    away = moved(f"{other.url}/external/users/42?key=1", status)
    for hops in ([away], [moved("/first"), away]):
        server = scripted(*hops, FINE)
        error = face.failure(server, TransportError, "another origin", max_retries=5)
        assert len(server.requests) == len(hops)
        for part in ("/external/users/42", other.url, "base_url"):
            assert part in str(error)
        assert server.secret not in str(error)


def test_a_redirect_without_a_target_is_its_status(face, scripted):
    error = face.failure(scripted(answer(302, b"where to?")), StatusError)
    assert (error.status_code, error.body) == (302, b"where to?")


@pytest.mark.parametrize(
    "target",
    [
        "//127.0.0.1:{other}/x",
        "http://localhost:{port}/x",
        "https://127.0.0.1:{port}/x",
        "file:///etc/hosts",
        "hTTp://LOCALHOST.:{port}/x",
        "http://[::ffff:127.0.0.1]:{port}/x",
        "http://127.0.0.1/x",
        "http://münchen.localhost:{port}/x",
        "/\\127.0.0.1:{other}/x",
        "ht\ttp:///127.0.0.1:{other}/x",
        "//127.0.0.1:{port}@127.0.0.1:{other}/x",
        "http://ada:pw@127.0.0.1:{other}/x",
        "http://127.0.0.1:{port}\\@127.0.0.1:{other}/x",
    ],
)
def test_no_spelling_of_a_target_leads_to_another_origin(face, scripted, other, target):
    """The secret is seen by the service alone, whether the target is refused or is its own."""
    server = scripted(leads_to(target, other))
    error = face.failure(server, (TransportError, StatusError), max_retries=0)
    for unwanted in (server.secret, "pw@", "names no target"):
        assert unwanted not in str(error)


@pytest.mark.parametrize(
    "target",
    [
        "HTTP://127.1:{port}/../arrived#fragment",
        "//127.0.0.1:{port}/arrived",
        "../../../arrived",
        "\\ar\trived",
        # Its password does not take the place of the secret.
        "http://ada:pw@127.0.0.1:{port}/arrived",
    ],
)
def test_every_spelling_of_the_same_origin_is_followed(face, scripted, target):
    server = scripted(leads_to(target))
    assert face.get(server, max_retries=0).id == 42
    assert len(server.requests) == 2
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {server.secret}"


def test_a_proxy_does_not_make_two_origins_one(face, scripted):
    """Both are asked for at the same address: the proxy's."""
    target = "http://elsewhere.example.com/external/users/42"
    proxy = scripted(lambda request: FINE if "elsewhere" in request.target else moved(target))
    client = face.kind(
        "http://chat.example.com", "secret", "example", allow_http=True, proxy=proxy.url
    )
    with pytest.raises(TransportError, match="elsewhere"):
        face.call(client.users.get, 42)
    face.close(client)
    assert [one.target for one in proxy.requests] == ["http://chat.example.com/external/users/42"]


@pytest.mark.parametrize("status", [200, 300, 305])
def test_nothing_but_a_redirect_sends_the_client_elsewhere(face, scripted, other, status):
    headers = {
        "location": f"{other.url}/x",
        "refresh": f"0; url={other.url}/x",
        "alt-svc": f'h2="127.0.0.1:{other.port}"; ma=9999',
        "link": f"<{other.url}/x>; rel=next",
    }
    server = scripted(lambda request: answer(status, user(42), headers))
    client = face.client(server, max_retries=0)
    for _ in range(2):
        if status < 300:
            assert face.call(client.users.get, 42).id == 42
        else:
            with pytest.raises((StatusError, TransportError)):
                face.call(client.users.get, 42)
    assert len(server.requests) == 2


def test_each_redirect_is_a_request_that_is_counted(face, scripted):
    server = scripted(moved("/1"), moved("/2"), answer(404, {}))
    error = face.failure(server, StatusError)
    assert [attempt.status for attempt in error.attempts] == [302, 302, 404]
    rows = {"limit": 99, "offset": 0, "total": 1, "users": [user(42)]}
    listing = face.client(scripted(moved("/1"), answer(200, rows))).users.list()
    assert len(face.collect(listing)) == 1
    assert listing.report.requests == 2


def test_redirects_keep_to_the_rate_limit(face, scripted):
    server = scripted(*[moved(f"/{number}") for number in range(5)], FINE)
    began = time.monotonic()
    assert face.get(server, rate_limit=20).id == 42
    # Six requests, the first at once.
    assert time.monotonic() - began >= 5 / 20 - 0.02


def test_redirects_do_not_spend_retries(face, scripted):
    server = scripted(moved("/1"), answer(503), moved("/1"), FINE)
    assert face.get(server, max_retries=1).id == 42
    assert [request.path for request in server.requests][1::2] == ["/1", "/1"]
