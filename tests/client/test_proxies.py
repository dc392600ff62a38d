"""Proxies: who is told which credential, and where a proxy's password does not show."""

import base64
import contextlib
import logging
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backread import BackreadError, Client, ConfigurationError, ConnectError, StatusError
from helpers.api_rows import user
from helpers.scripted_server import Place, answer

# The authority of the tests; the wheel is checked without it.
pytest.importorskip("trustme")


from helpers.debug_output import (
    error_output,
    everything_public,
    traceback_with_locals,
    without_the_callers_frame,
)
from helpers.proxy_server import ProxyServer
from helpers.tls_server import SecureServer

HOST = "chat.example.com"
PASSWORD = "hunter2-and-more"
BASIC = "Basic " + base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
SHOWN = (PASSWORD, BASIC.removeprefix("Basic "))
SECRET = SecureServer.secret
NEEDS_PASSWORD = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"


pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def secure(authority: Any) -> Iterator[SecureServer]:
    """A service that is known by a name which is not this machine's."""
    with SecureServer(authority.context(HOST), host=HOST) as server:
        yield server


Propose = Callable[..., ProxyServer]


@pytest.fixture
def propose() -> Iterator[Propose]:
    with contextlib.ExitStack() as cleanup:

        def start(*arguments: Any, **options: Any) -> ProxyServer:
            return cleanup.enter_context(ProxyServer(*arguments, **options))

        yield start


@pytest.fixture(params=["argument", "HTTPS_PROXY", "all_proxy"])
def named(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Names a proxy by the environment, or by the argument, which takes precedence over it."""

    def name(address: str) -> dict[str, Any]:
        if request.param != "argument":
            monkeypatch.setenv(request.param, address)
            return {}
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        return {"proxy": address}

    return name


def check_told_apart(proxy: ProxyServer, service: SecureServer) -> None:
    """The proxy was told its password, the service its secret, and neither the other's."""
    (connect,) = proxy.requests
    (request,) = service.headers
    assert (connect.method, connect.target) == ("CONNECT", f"{HOST}:{service.server_port}")
    assert connect.headers["proxy-authorization"] == BASIC
    assert "authorization" not in connect.headers
    assert SECRET not in str(connect)
    assert request["authorization"] == f"Bearer {SECRET}"
    assert "proxy-authorization" not in request
    assert not [shown for shown in SHOWN if shown in str(request)]


ENCODE = r"/ as %2F, \? as %3F, # as %23"


@pytest.mark.parametrize(
    ("proxy", "says"),
    [
        (f"ftp://ada:{PASSWORD}@proxy.example.com", "(?i)proxy"),
        (f"socks5h://ada:{PASSWORD}@127.0.0.1:1080", "(?i)proxy"),
        (f"http://ada:{PASSWORD}@[::", "(?i)proxy"),
        (f"garbage {PASSWORD}", "(?i)proxy"),
        *((f"http://ada:{PASSWORD}{odd}w@127.0.0.1:3128", ENCODE) for odd in "/?#\\"),
        (f"http://ada:123/{PASSWORD}@127.0.0.1:3128", ENCODE),
    ],
)
def test_a_proxy_that_is_refused_is_not_shown(face, named, proxy, says):
    """reqwest ignores such a value in the environment, and requests would bypass the proxy."""
    options = named(proxy)
    with pytest.raises(ConfigurationError, match=says) as caught:
        face.kind("https://chat.example.com", SECRET, "example", **options)
    error = without_the_callers_frame(caught.value)
    told = error_output(error) + traceback_with_locals(error) + str(pickle.dumps(caught.value))
    assert PASSWORD not in told
    assert "\n" not in str(caught.value)


def test_http_proxy_of_a_cgi_script_is_an_error(monkeypatch):
    """A CGI server sets the variable from the ``Proxy`` header of each request."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:3128")
    monkeypatch.setenv("REQUEST_METHOD", "GET")
    with pytest.raises(ConfigurationError, match="HTTP_PROXY"):
        Client("http://chat.example.com", "s3cretOfOurs", "example", allow_http=True)


def test_all_proxy_may_have_another_scheme_where_it_is_not_used(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks://127.0.0.1:1080/")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    Client("https://chat.example.com", "s3cretOfOurs", "example").close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_proxy_and_service_are_each_told_their_own_credential(
    face, secure, authority, propose, named, scheme
):
    context = authority.context("127.0.0.1") if scheme == "https" else None
    proxy = propose(secure.server_port, context=context)
    options = named(f"{scheme}://ada:{PASSWORD}@{proxy.address}")
    client = face.client(secure, ca_bundle=authority.file, **options)
    assert face.call(client.users.get, 42).id == 42
    check_told_apart(proxy, secure)
    assert PASSWORD not in everything_public(client)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("ada@example.com:p@ss:99", "ada@example.com:p@ss:99"),
        ("ada:p%40s%23s", "ada:p@s#s"),
        ("ada:50%", "ada:50%"),
    ],
)
def test_a_password_is_sent_to_a_proxy_whole(face, secure, authority, propose, named, given, sent):
    proxy = propose(secure.server_port)
    options = named(f"http://{given}@{proxy.address}")
    assert face.get(secure, ca_bundle=authority.file, **options).id == 42
    (connect,) = proxy.requests
    _, _, credential = connect.headers["proxy-authorization"].partition(" ")
    assert base64.b64decode(credential).decode() == sent


class Plain(Place):
    """A service that is reached over plain HTTP, by a proxy."""

    url = f"http://{HOST}"


@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize("exempt", ["example.com, 192.0.2.1", "192.0.2.0/24"])
def test_a_host_of_no_proxy_is_asked_without_one(face, propose, monkeypatch, variable, exempt):
    proxy = propose()
    monkeypatch.setenv("HTTPS_PROXY", f"http://ada:{PASSWORD}@{proxy.address}")
    # An address that is kept for documents: nothing answers there.
    monkeypatch.setenv(variable, exempt)
    client = face.kind("https://192.0.2.1", SECRET, "example", timeout=0.5, max_retries=0)
    with pytest.raises(BackreadError):
        face.call(client.users.get, 42)
    face.close(client)
    assert proxy.requests == []


def test_plain_http_by_a_proxy_shows_it_the_secret_so_it_must_be_allowed(face, propose):
    for base_url in ("http://127.0.0.1:9", "http://localhost:9"):
        with pytest.raises(ConfigurationError, match="allow_http") as caught:
            face.kind(base_url, SECRET, "example", proxy="http://ada:pw@proxy.example.com:3128")
        assert "proxy" in str(caught.value)
    proxy = propose(plain=lambda request: answer(200, user(42)))
    address = f"http://ada:{PASSWORD}@{proxy.address}"
    assert face.get(Plain(), allow_http=True, proxy=address).id == 42
    (request,) = proxy.requests
    assert request.target == f"http://{HOST}/external/users/42"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["proxy-authorization"] == BASIC


@pytest.mark.parametrize("trouble", ["407", "403", "garbage", "hang up", "unreachable", "TLS"])
def test_no_failure_shows_the_password(
    each_face, secure, authority, propose, caplog, named, trouble
):
    caplog.set_level(logging.DEBUG)
    refusal = {
        "407": NEEDS_PASSWORD,
        "403": b"HTTP/1.1 403 Forbidden\r\n\r\n",
        "garbage": b"\x00\xff\r\n\r\n",
        "hang up": b"",
    }.get(trouble)
    # Nobody vouches for its certificate.
    context = authority.context("127.0.0.1") if trouble == "TLS" else None
    proxy = propose(secure.server_port, refusal=refusal, context=context)
    address = "127.0.0.1:9" if trouble == "unreachable" else proxy.address
    scheme = "https" if trouble == "TLS" else "http"
    options = named(f"{scheme}://ada:{PASSWORD}@{address}")
    client = each_face.client(secure, max_retries=1, deadline=5, **options)
    for call in (
        lambda: each_face.call(client.users.get, 42),
        lambda: each_face.collect(client.messages.all(users=[1])),
    ):
        with pytest.raises(ConnectError) as caught:
            call()
        error = caught.value
        told = error_output(error) + traceback_with_locals(without_the_callers_frame(error))
        told += str(pickle.dumps(error)) + caplog.text
        assert not [shown for shown in (*SHOWN, SECRET) if shown in told]
    assert secure.requests == []


def test_a_refused_password_is_sent_to_a_proxy_once(face, secure, propose):
    """More attempts might lock the account."""
    proxy = propose(secure.server_port, refusal=NEEDS_PASSWORD)
    hint = r"407: the proxy requires .*Negotiate, name a relay.* proxy= or HTTPS_PROXY"
    address = f"http://ada:{PASSWORD}@{proxy.address}"
    error = face.failure(secure, ConnectError, hint, proxy=address)
    assert len(error.attempts) == len(proxy.requests) == 1
    plain = f"http://{propose(plain=lambda request: NEEDS_PASSWORD).address}"
    says = "proxy= or HTTP_PROXY"
    error = face.failure(Plain(), StatusError, says, allow_http=True, proxy=plain)
    assert error.status_code == 407
    closed = "no answer: the proxy did not connect: .*refused"
    options = {"proxy": "http://127.0.0.1:9", "max_retries": 0, "outage_patience": 0}
    face.failure(secure, ConnectError, closed, **options)


@pytest.mark.parametrize(
    ("tls", "says"),
    [
        ("none", ".*does not speak TLS: .* scheme of .* the proxy"),
        ("of another host", ".*: check the host in .* the proxy's address"),
        ("with a client's certificate", ".*CertificateRequired"),
    ],
)
def test_a_proxy_whose_tls_fails_is_named(face, secure, authority, propose, tls, says):
    context = authority.context("other.example" if tls == "of another host" else "127.0.0.1")
    if tls == "with a client's certificate":
        authority.trusted_by(context)
    proxy = propose(secure.server_port, context=None if tls == "none" else context)
    face.failure(
        secure,
        ConnectError,
        f"no secure connection to the proxy: {says}",
        proxy=f"https://{proxy.address}",
        ca_bundle=authority.file,
    )
    assert secure.requests == []


def test_nothing_that_hangs_on_a_client_holds_the_password(face, secure, authority, propose):
    proxy = propose(secure.server_port)
    client = face.client(
        secure, proxy=f"http://ada:{PASSWORD}@{proxy.address}", ca_bundle=authority.file
    )
    assert face.call(client.users.get, 42).id == 42
    listing = client.users.list()
    changed = client.with_options(timeout=3)
    for thing in (client, changed, client.users, client.messages, listing):
        assert PASSWORD not in everything_public(thing)
        with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
            pickle.dumps(thing)
        assert PASSWORD not in error_output(caught.value)


def test_the_options_of_the_command_do_not_show_it():
    pytest.importorskip("typer")
    from backread.cli.connection import Connection

    connection = Connection(proxy=f"http://ada:{PASSWORD}@proxy.example.com")
    assert PASSWORD not in repr(connection)
