"""Redirects: followed within the origin, five at most; the secret never leaves it."""

from __future__ import annotations

from typing import Any

import pytest

from backread import StatusError, TransportError
from canned import envelope, user
from scripted_server import answer

FINE = answer(200, user(42))


def moved(location: str, status: int = 302) -> bytes:
    return answer(status, b"", {"location": location})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_within_the_origin_is_followed(face: Any, scripted: Any, status: int) -> None:
    server = scripted(moved("/elsewhere/users/42", status), FINE)
    assert face.call(face.client(server).users.get, 42).id == 42
    first, second = server.requests
    assert second.path == "/elsewhere/users/42"
    for name in ("authorization", "accept", "user-agent"):
        assert second.headers[name] == first.headers[name]
    assert "referer" not in second.headers
    assert second.method == "GET"


def test_a_whole_address_of_the_same_origin_is_followed(face: Any, scripted: Any) -> None:
    server = scripted(lambda request: FINE if request.path == "/there" else moved(target))
    target = f"{server.url}/there"
    assert face.call(face.client(server).users.get, 42).id == 42


def test_five_redirects_are_followed_and_a_sixth_is_refused(face: Any, scripted: Any) -> None:
    hops = [moved(f"/hop/{number}") for number in range(1, 7)]
    server = scripted(*hops[:5], FINE)
    assert face.call(face.client(server).users.get, 42).id == 42
    assert len(server.requests) == 6
    server = scripted(*hops, FINE)
    with pytest.raises(TransportError, match="5 redirects"):
        face.call(face.client(server).users.get, 42)
    assert len(server.requests) == 6


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin_is_refused_and_named(
    face: Any, scripted: Any, status: int
) -> None:
    other = scripted(lambda request: FINE)
    server = scripted(moved(f"{other.url}/external/users/42?key=1", status), FINE)
    with pytest.raises(TransportError) as caught:
        face.call(face.client(server, max_retries=5).users.get, 42)
    assert other.requests == []
    assert len(server.requests) == 1
    for part in ("/external/users/42", other.url, "base_url"):
        assert part in str(caught.value)
    assert server.secret not in str(caught.value)


@pytest.mark.parametrize(
    "target", ["//{other}/x", "http://localhost:{port}/x", "https://127.0.0.1:{port}/x"]
)
def test_another_host_or_scheme_is_another_origin(face: Any, scripted: Any, target: str) -> None:
    other = scripted(lambda request: FINE)
    server = scripted(
        lambda request: moved(target.format(other=f"127.0.0.1:{other.port}", port=server.port))
    )
    with pytest.raises(TransportError, match="another origin"):
        face.call(face.client(server, max_retries=0).users.get, 42)
    assert other.requests == []
    assert len(server.requests) == 1


def test_an_origin_that_is_left_by_a_second_redirect_is_refused(face: Any, scripted: Any) -> None:
    other = scripted(lambda request: FINE)
    server = scripted(moved("/first"), moved(other.url))
    with pytest.raises(TransportError, match="another origin"):
        face.call(face.client(server).users.get, 42)
    assert other.requests == []


def test_a_walk_is_refused_at_another_origin_too(face: Any, scripted: Any) -> None:
    other = scripted(lambda request: answer(200, envelope([user(1)])))
    server = scripted(moved(f"{other.url}/external/users"))
    with pytest.raises(TransportError, match="another origin"):
        face.collect(face.client(server).users.list())
    assert other.requests == []


@pytest.mark.parametrize(
    "location", ["file:///etc/hosts", "data:application/json,{}", "ftp://service.example/"]
)
def test_a_redirect_out_of_http_is_an_error_that_names_it(
    face: Any, scripted: Any, location: str
) -> None:
    server = scripted(moved(location))
    with pytest.raises((TransportError, StatusError)) as caught:
        face.call(face.client(server, max_retries=0).users.get, 42)
    assert len(server.requests) == 1
    assert "names no target" not in str(caught.value)


def test_a_redirect_without_a_target_is_its_status(face: Any, scripted: Any) -> None:
    server = scripted(answer(302, b"where to?"))
    with pytest.raises(StatusError) as caught:
        face.call(face.client(server).users.get, 42)
    assert caught.value.status_code == 302
    assert caught.value.body == b"where to?"
