"""``backread doctor``: what is wrong on the way to the service: proxies, TLS."""

import base64
import socket
import ssl
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("duckdb")

from backread import BackreadError, Client
from backread.cli.doctor.proxies import proxy_of_environment
from helpers.command_line import settings_of
from helpers.doctor_report import findings
from helpers.proxy_server import ProxyServer


@pytest.fixture
def secure(authority: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Names a service over TLS in the environment."""
    from helpers.tls_server import SecureServer

    def serve(context: Any, host: str = "localhost") -> Any:
        server = SecureServer(context, host)
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        return server

    return serve


def test_a_closed_port(doctor, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("BACKREAD_BASE_URL", f"http://127.0.0.1:{port}")
    done = doctor("--json")
    assert done.code == 5
    [(state, text)] = findings(done, "reachable")
    assert state == "problem"
    assert f"127.0.0.1:{port} cannot be connected to: nothing listens there" in text


def test_an_unknown_host(doctor, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.invalid")
    monkeypatch.setenv("BACKREAD_API_SECRET", "s3cret-of-mine")
    done = doctor("--json")
    assert done.code == 5
    [(state, text)] = findings(done, "reachable")
    assert state == "problem"
    assert "the name chat.invalid has no address" in text
    assert "s3cret-of-mine" not in done.out


def test_a_proxy_is_named_without_its_password(doctor, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.example.com")
    monkeypatch.setenv("BACKREAD_API_SECRET", "s3cret-of-mine")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:passw0rd@127.0.0.1:{port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    done = doctor("--json")
    assert done.code == 5
    [through, refused] = findings(done, "reachable")
    assert through[1].startswith(f"requests go through the proxy 127.0.0.1:{port} (HTTPS_PROXY")
    assert refused[0] == "problem"
    assert "passw0rd" not in done.out


@pytest.mark.parametrize(
    ("environment", "host", "used"),
    [
        ({}, "chat.invalid", ""),
        ({"HTTPS_PROXY": "A", "https_proxy": "B"}, "chat.invalid", "HTTPS_PROXY"),
        ({"https_proxy": "A", "ALL_PROXY": "B"}, "chat.invalid", "https_proxy"),
        ({"HTTP_PROXY": "A", "all_proxy": "B"}, "chat.invalid", "all_proxy"),
        ({"ALL_PROXY": "A", "all_proxy": "B"}, "chat.invalid", "ALL_PROXY"),
        ({"HTTPS_PROXY": "", "ALL_PROXY": "A"}, "chat.invalid", "ALL_PROXY"),
        ({"HTTPS_PROXY": "", "https_proxy": "A", "all_proxy": "B"}, "chat.invalid", "https_proxy"),
        ({"HTTPS_PROXY": "A"}, "app.localhost", ""),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "x", "no_proxy": "*"}, "chat.invalid", "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "", "no_proxy": "*"}, "chat.invalid", "HTTPS_PROXY"),
        *(
            ({"HTTPS_PROXY": "A", "NO_PROXY": exempt}, host, used)
            for exempt, host, used in [
                ("localhost,*", "chat.invalid", ""),
                ("localhost, CHAT.invalid", "chat.invalid", ""),
                ("invalid", "chat.invalid", ""),
                (".chat.invalid", "chat.invalid", ""),
                ("hat.invalid", "chat.invalid", "HTTPS_PROXY"),
                ("*.invalid", "chat.invalid", "HTTPS_PROXY"),
                ("other.invalid  chat.invalid", "chat.invalid", "HTTPS_PROXY"),
                (",", "chat.invalid", "HTTPS_PROXY"),
                ("chat.invalid:443", "chat.invalid", "HTTPS_PROXY"),
                ("*", "192.0.2.7", "HTTPS_PROXY"),
                ("192.0.2.7", "192.0.2.7", ""),
                ("192.0.2.0/24", "192.0.2.7", ""),
                ("192.0.2.9/24", "192.0.2.7", ""),
                ("192.0.2.0/255.255.255.0", "192.0.2.7", "HTTPS_PROXY"),
                ("198.51.100.0/24,2001:db8::/32", "192.0.2.7", "HTTPS_PROXY"),
                (".2.7", "192.0.2.7", "HTTPS_PROXY"),
                ("2001:db8::/32", "[2001:db8::7]", ""),
                ("2001:db8::7", "[2001:db8::7]", ""),
                ("[2001:db8::7]", "[2001:db8::7]", "HTTPS_PROXY"),
            ]
        ),
    ],
)
def test_the_proxy_of_the_environment_is_the_one_that_the_client_uses(
    no_settings, monkeypatch, environment, host, used
):
    forbidden = b"HTTP/1.1 403 Forbidden\r\n\r\n"
    url = f"https://{host}"
    with ProxyServer(refusal=forbidden) as a, ProxyServer(refusal=forbidden) as b:
        proxies = {"A": a, "B": b}
        for name, value in environment.items():
            address = f"http://{proxies[value].address}" if value in proxies else value
            monkeypatch.setenv(name, address)
        assert proxy_of_environment(urlsplit(url))[1] == used
        # A proxy answers, and the hosts do not.
        timeout = 60 if used else 0.3
        client = Client(url, "s3cret", "example", timeout=timeout, max_retries=0)
        with client, pytest.raises(BackreadError):
            client.users.page(limit=1)
        asked = [name for name, proxy in proxies.items() if proxy.requests]
        assert asked == ([environment[used]] if used else [])


def test_two_spellings_of_a_variable_that_differ_are_a_warning(doctor, no_settings, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.example.com")
    monkeypatch.setenv("BACKREAD_API_SECRET", "s3cret-of-mine")
    monkeypatch.setenv("BACKREAD_VENDOR", "example")
    with ProxyServer(refusal=b"HTTP/1.1 403 Forbidden\r\n\r\n") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
        monkeypatch.setenv("https_proxy", "http://ada:passw0rd@127.0.0.1:9")
        done = doctor("--json")
        monkeypatch.setenv("https_proxy", f"http://{proxy.address}")
        assert "differ" not in doctor("--json").out
    warning, through, *_ = findings(done, "reachable")
    assert warning[0] == "warning"
    assert warning[1].startswith("HTTPS_PROXY and https_proxy differ: backread uses HTTPS_PROXY")
    assert f"the proxy {proxy.address} (HTTPS_PROXY)" in through[1]
    assert "passw0rd" not in done.out


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (403, "ask the operators of the proxy to allow this host and port"),
        (503, "check the host in base_url; if it is right, ask the operators of the proxy"),
        (407, "give its user name and password in {}: http://user:password@host:port"),
    ],
)
@pytest.mark.parametrize("by", ["proxy", "HTTPS_PROXY"])
def test_a_proxy_that_refuses_the_host_is_quoted(
    doctor, no_settings, monkeypatch, status, advice, by
):
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.example.com")
    monkeypatch.setenv("BACKREAD_API_SECRET", "s3cret-of-mine")
    monkeypatch.setenv("BACKREAD_VENDOR", "example")
    with ProxyServer(refusal=f"HTTP/1.1 {status} No\r\n\r\n".encode()) as proxy:
        variable = "BACKREAD_PROXY" if by == "proxy" else by
        monkeypatch.setenv(variable, f"http://ada:passw0rd%21@{proxy.address}")
        done = doctor("--json")
    assert done.code == 5
    assert findings(done, "reachable")[-1] == (
        "problem",
        f"the proxy answered {status} to CONNECT chat.example.com:443 -> {advice.format(by)}",
    )
    assert findings(done, "service") == []
    # Once: more attempts with a wrong password might lock the account.
    [request] = proxy.requests
    basic = base64.b64encode(b"ada:passw0rd!").decode()
    assert request.headers["proxy-authorization"] == f"Basic {basic}"
    assert "s3cret-of-mine" not in str(request)
    assert "passw0rd" not in done.out


@pytest.mark.parametrize(
    ("offers", "advice"),
    [
        (["Negotiate", "NTLM"], "it accepts Negotiate or NTLM, and backread knows Basic"),
        (['Negotiate, Digest realm="a, b", nonce="c"'], "it accepts Negotiate or Digest, and"),
        (["Negotiate", 'Basic realm="x"'], "give its user name"),
        (['Negotiate, basic realm="x"'], "give its user name"),
    ],
)
def test_a_proxy_that_knows_no_basic_is_named_with_what_it_knows(
    doctor, no_settings, monkeypatch, offers, advice
):
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.example.com")
    monkeypatch.setenv("BACKREAD_API_SECRET", "s3cret-of-mine")
    monkeypatch.setenv("BACKREAD_VENDOR", "example")
    lines = "".join(f"Proxy-Authenticate: {each}\r\n" for each in offers)
    with ProxyServer(refusal=f"HTTP/1.1 407 No\r\n{lines}\r\n".encode()) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://ada:passw0rd@{proxy.address}")
        done = doctor("--json")
    assert f"-> {advice}" in findings(done, "reachable")[-1][1]
    assert len(proxy.requests) == 1


def test_a_password_that_a_plain_proxy_refused_is_not_repeated(doctor, no_settings, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", "http://chat.example.com")
    monkeypatch.setenv("BACKREAD_ALLOW_HTTP", "1")
    monkeypatch.setenv("BACKREAD_API_SECRET", "s3cret-of-mine")
    monkeypatch.setenv("BACKREAD_VENDOR", "example")
    refusal = b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"
    with ProxyServer(plain=lambda request: refusal) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://ada:passw0rd@{proxy.address}")
        done = doctor("--json")
    [(state, text)] = findings(done, "service")
    assert (state, "HTTP_PROXY" in text) == ("problem", True)
    assert len(proxy.requests) == 1


def test_a_proxy_for_http_alone_is_named_where_another_may_be_needed(doctor, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.invalid")
    monkeypatch.setenv("BACKREAD_API_SECRET", "s3cret-of-mine")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    advice = "HTTP_PROXY is for http:// only: set HTTPS_PROXY"
    [(_, text)] = findings(doctor("--json"), "reachable")
    assert advice in text
    monkeypatch.setenv("NO_PROXY", "chat.invalid")
    [(_, text)] = findings(doctor("--json"), "reachable")
    assert advice not in text


def test_a_proxy_that_connects_to_the_host(doctor, authority, monkeypatch):
    from helpers.tls_server import SecureServer

    with (
        SecureServer(authority.context("chat.example.com"), "chat.example.com") as server,
        ProxyServer(server.server_port) as proxy,
    ):
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        options = ("--proxy", f"http://{proxy.address}", "--ca-bundle", authority.file)
        done = doctor("--json", *options)
    assert f"the proxy connects to chat.example.com:{server.server_port}" in done.out
    assert "the service answered in" in done.out


def test_a_trusted_tls_certificate(doctor, authority, secure):
    with secure(authority.context("localhost")):
        done = doctor("--json", "--ca-bundle", authority.file)
        *_, (state, text) = findings(done, "reachable")
        assert (state, "the TLS certificate is trusted (issued by authority" in text) == (
            "ok",
            True,
        )
        soon = datetime.now(UTC) + timedelta(days=5)
    with secure(authority.context("localhost", not_after=soon)):
        *_, (state, text) = findings(doctor("--json", "--ca-bundle", authority.file), "reachable")
        assert state == "warning"
        assert text.startswith("the TLS certificate expires in 4 days")


def test_an_expired_tls_certificate(doctor, authority, secure):
    past = datetime.now(UTC) - timedelta(days=3)
    context = authority.context("localhost", not_before=past - timedelta(days=9), not_after=past)
    with secure(context):
        done = doctor("--json", "--ca-bundle", authority.file)
    assert done.code == 5
    *_, (state, text) = findings(done, "reachable")
    assert state == "warning"
    assert "certificate has expired (issued by authority" in text
    assert f"valid until {past:%Y-%m-%d %H:%M} UTC" in text
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert "the certificate has expired" in text


def test_a_tls_certificate_of_an_unknown_authority(doctor, authority, secure):
    with secure(authority.context("localhost")):
        done = doctor("--json")
    assert done.code == 5
    *_, (state, text) = findings(done, "reachable")
    assert state == "warning"
    assert "the TLS certificate is not trusted: unable to get local issuer" in text
    assert "issued by authority" in text


def test_a_port_that_does_not_speak_tls(doctor, server, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", server.url.replace("http:", "https:"))
    done = doctor("--json")
    assert done.code == 5
    *_, (state, text) = findings(done, "reachable")
    assert state == "warning"
    assert "the TLS handshake fails" in text
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert "the server does not speak TLS: check the port and the scheme of base_url" in text


def test_a_server_that_requires_a_client_certificate(doctor, authority, secure):
    context = authority.context("localhost")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    authority.trusted_by(context)
    with secure(context):
        done = doctor("--json", "--ca-bundle", authority.file)
    assert done.code == 5
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert "received fatal alert" in text
    assert "check the scheme" not in done.out


def test_a_server_of_an_old_tls(doctor, authority, secure):
    context = authority.context("localhost")
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with secure(context):
        done = doctor("--json", "--ca-bundle", authority.file)
    assert done.code == 5
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert "received fatal alert: ProtocolVersion" in text
    assert "check the scheme" not in done.out
