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


@pytest.mark.parametrize(
    "target",
    [
        "HTTP://127.0.0.1:{other}/x",
        "hTTp://LOCALHOST:{port}/x",
        "http://localhost.:{port}/x",
        "http://127.0.0.1.:{other}/x",
        "http://[::1]:{port}/x",
        "http://[::ffff:127.0.0.1]:{port}/x",
        "http://127.0.0.2:{port}/x",
        "http://127.0.0.1/x",
        "http://xn--mnchen-3ya.localhost:{port}/x",
        "http://münchen.localhost:{port}/x",
        "http:\\\\127.0.0.1:{other}\\x",
        "\\\\127.0.0.1:{other}\\x",
        "/\\127.0.0.1:{other}/x",
        "///127.0.0.1:{other}/x",
        "ht\ttp://127.0.0.1:{other}/x",
        "//127.0.0.1:{port}@127.0.0.1:{other}/x",
        "http://ada:pw@127.0.0.1:{other}/x",
        "http://127.0.0.1:{port}#@127.0.0.1:{other}/x@localhost:{port}",
        "http://127.0.0.1:{port}\\@127.0.0.1:{other}/x",
        "https://127.0.0.1/x",
        "wss://127.0.0.1:{port}/x",
        "javascript:alert(1)",
    ],
)
def test_no_spelling_of_a_target_leads_to_another_origin(
    face: Any, scripted: Any, target: str
) -> None:
    """The secret is seen by the service alone, whether the target is refused or is its own."""
    other = scripted(lambda request: FINE)
    server = scripted(
        lambda request: (
            FINE
            if request.path == "/arrived"
            else moved(target.format(port=server.port, other=other.port))
        )
    )
    with pytest.raises((TransportError, StatusError)) as caught:
        face.call(face.client(server, max_retries=0).users.get, 42)
    assert other.requests == []
    assert server.secret not in str(caught.value)
    assert "pw@" not in str(caught.value)


@pytest.mark.parametrize(
    "target",
    [
        "HTTP://127.0.0.1:{port}/arrived",
        "http://127.1:{port}/arrived",
        "http://2130706433:{port}/arrived",
        "//127.0.0.1:{port}/arrived",
        "\\arrived",
        "../../../arrived",
        "http://127.0.0.1:{port}/../arrived#fragment",
        "/ar\trived",
    ],
)
def test_every_spelling_of_the_same_origin_is_followed(
    face: Any, scripted: Any, target: str
) -> None:
    server = scripted(
        lambda request: (
            FINE if request.path == "/arrived" else moved(target.format(port=server.port))
        )
    )
    assert face.call(face.client(server, max_retries=0).users.get, 42).id == 42
    assert server.requests[1].headers["authorization"] == f"Bearer {server.secret}"


def test_a_password_in_a_target_does_not_take_the_place_of_the_secret(
    face: Any, scripted: Any
) -> None:
    server = scripted(
        lambda request: (
            FINE
            if request.path == "/arrived"
            else moved(f"http://ada:pw@127.0.0.1:{server.port}/arrived")
        )
    )
    assert face.call(face.client(server, max_retries=0).users.get, 42).id == 42
    assert len(server.requests) == 2
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {server.secret}"


def test_a_proxy_does_not_make_two_origins_one(face: Any, scripted: Any) -> None:
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


@pytest.mark.parametrize("status", [200, 201, 300, 304, 305, 306])
@pytest.mark.parametrize("header", ["location", "refresh", "content-location", "alt-svc", "link"])
def test_nothing_but_a_redirect_sends_the_client_elsewhere(
    face: Any, scripted: Any, status: int, header: str
) -> None:
    other = scripted(lambda request: FINE)
    value = {
        "refresh": f"0; url={other.url}/x",
        "alt-svc": f'h2="127.0.0.1:{other.port}"; ma=9999',
        "link": f"<{other.url}/x>; rel=next",
    }.get(header, f"{other.url}/x")
    server = scripted(lambda request: answer(status, user(42), {header: value}))
    client = face.client(server, max_retries=0)
    for _ in range(2):
        if status < 300:
            assert face.call(client.users.get, 42).id == 42
        else:
            with pytest.raises((StatusError, TransportError)):
                face.call(client.users.get, 42)
    assert other.requests == []
    assert len(server.requests) == 2
