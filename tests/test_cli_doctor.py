"""``backread doctor``: what is wrong with the settings, the network, the service and a mirror."""

import base64
import errno
import json
import re
import shutil
import socket
import ssl
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("duckdb")

from backread import BackreadError, Client, Mirror
from backread.cli.doctor.proxies import proxy_of_environment
from backread.mirror.lock import writer_lock
from backread.mirror.pending_removal import mark_removal
from backread.testing import MockServer
from command_line import Done, settings_of
from modes import posix_only
from proxy_server import ProxyServer
from scripted_server import Request, ScriptedServer, answer


@pytest.fixture
def doctor(backread: Callable[..., Done]) -> Callable[..., Done]:
    """Runs it; nothing but the report is written."""

    def run(*arguments: object) -> Done:
        done = backread("doctor", *arguments)
        assert done.error == ""
        return done

    return run


@pytest.fixture
def secure(authority: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Names a service over TLS in the environment."""
    from secure_server import SecureServer

    def serve(context: Any, host: str = "localhost") -> Any:
        server = SecureServer(context, host)
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        return server

    return serve


def findings(done: Done, topic: str) -> list[tuple[str, str]]:
    """The states and texts of one part of the report."""
    found = json.loads(done.out)
    assert found["exit_code"] == done.code
    return [
        (each["state"], f"{each['text']} -> {each['advice']}")
        for each in found["findings"]
        if each["topic"] == topic
    ]


def on_one_line(done: Done) -> str:
    return " ".join(done.out.split())


def test_nothing_is_wrong(doctor, server, tmp_path):
    folder = tmp_path / "chats"
    with server.client() as client:
        Mirror(folder).sync(client)
    done = doctor(folder)
    said = on_one_line(done)
    assert done.code == 0
    assert f"ok base_url {server.url} (BACKREAD_BASE_URL)" in said
    assert "ok the API secret is set (BACKREAD_API_SECRET)" in said
    assert "it has 120 users" in said
    assert "ok the certificate of the list of users is " in said
    assert re.search(r"\n\d+ ok\n$", done.out)
    assert not re.search(r"^  (warning|problem)", done.out, re.MULTILINE)


def test_nothing_is_configured(doctor, settings, monkeypatch):
    for name in settings:
        monkeypatch.delenv(name)
    done = doctor()
    assert done.code == 0
    said = on_one_line(done)
    assert "warning no service is configured -> to read a service, set BACKREAD_BASE_URL" in said
    assert "run: backread demo" in said


def test_a_duckdb_that_is_too_old(doctor, monkeypatch):
    monkeypatch.setattr("duckdb.__version__", "1.4.3")
    done = doctor("--json")
    assert done.code == 1
    [problem] = [text for state, text in findings(done, "installed") if state == "problem"]
    assert re.fullmatch(
        r"a mirror needs DuckDB 2[\d.]* or later, but 1\.4\.3 is installed -> "
        "run: pip install -U duckdb",
        problem,
    )


def test_it_sends_two_requests_and_no_more(doctor, server):
    before = server.counts()
    doctor("--max-retries", "9")
    after = server.counts()
    sent = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert sent == {"users": 1, "user": 1}


def test_a_missing_setting_and_a_misspelled_one(doctor, monkeypatch):
    monkeypatch.delenv("BACKREAD_VENDOR")
    monkeypatch.setenv("BACKREAD_VENDER", "x")
    done = doctor("--json")
    assert done.code == 2
    [strange, missing] = findings(done, "configured")
    assert strange[0] == "warning"
    assert "BACKREAD_VENDER" in strange[1]
    assert missing[0] == "problem"
    assert "vendor" in missing[1]
    assert findings(done, "service") == []


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("BACKREAD_API_SECRET", 4, "copy the API Secret Key again"),
        ("BACKREAD_VENDOR", 2, "vendor is the word in the media type"),
        ("BACKREAD_BASE_URL", 2, "check its path"),
    ],
)
def test_a_wrong_setting_is_explained(doctor, settings, monkeypatch, name, code, said):
    wrong = f"{settings[name]}/x" if name == "BACKREAD_BASE_URL" else "mock_wrong"
    monkeypatch.setenv(name, wrong)
    done = doctor("--json")
    assert done.code == code
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert said in text


@pytest.mark.parametrize("name", ["BACKREAD_ON_RATE_LIMIT", "BACKREAD_USER_AGENT"])
def test_a_variable_for_an_option_that_only_python_has_is_not_approved(doctor, monkeypatch, name):
    monkeypatch.setenv(name, "raise")
    found = findings(doctor("--json"), "configured")
    assert [text for state, text in found if state == "warning"] == [
        f"no setting of backread: {name} -> correct the name, or leave it out"
    ]


def test_a_secret_file_of_the_environment_is_not_read_by_python(
    doctor, settings, monkeypatch, tmp_path
):
    file = tmp_path / "secret"
    file.write_text(settings["BACKREAD_API_SECRET"], encoding="utf-8")
    file.chmod(0o600)
    said = "only the command reads BACKREAD_SECRET_FILE: Client() in Python needs"
    monkeypatch.setenv("BACKREAD_SECRET_FILE", str(file))
    # It is set here, so Client() works.
    assert said not in on_one_line(doctor())
    monkeypatch.delenv("BACKREAD_API_SECRET")
    done = doctor()
    assert done.code == 0
    assert said in on_one_line(done)
    monkeypatch.delenv("BACKREAD_SECRET_FILE")
    assert said not in on_one_line(doctor("--secret-file", file))


@posix_only
def test_a_secret_file_that_others_may_read_is_a_warning(doctor, settings, monkeypatch, tmp_path):
    file = tmp_path / "secret"
    file.write_text(settings["BACKREAD_API_SECRET"], encoding="utf-8")
    file.chmod(0o644)
    monkeypatch.delenv("BACKREAD_API_SECRET")
    monkeypatch.setenv("BACKREAD_SECRET_FILE", str(file))
    done = doctor("--json")
    assert done.code == 0
    [warning] = [text for state, text in findings(done, "configured") if state == "warning"]
    assert f"{file}, from BACKREAD_SECRET_FILE (mode 0644): other users may read it" in warning
    file.chmod(0o600)
    assert "warning" not in dict(findings(doctor("--json"), "configured"))


def test_a_named_service(doctor, server, monkeypatch, tmp_path):
    config = tmp_path / "config.toml"
    table = f'[services.lab]\nbase_url = "{server.url}"\nvendor = "{server.vendor}"\n'
    config.write_text(f'{table}secret_file = "secret"\ntimeout = 3\n', encoding="utf-8")
    (tmp_path / "secret").write_text(server.secret, encoding="utf-8")
    config.chmod(0o600)
    (tmp_path / "secret").chmod(0o600)
    monkeypatch.setenv("BACKREAD_CONFIG", str(config))
    monkeypatch.setenv("BACKREAD_BASE_URL", "http://127.0.0.1:1")
    done = doctor("--json", "--service", "lab")
    assert done.code == 0
    texts = [text for _, text in findings(done, "configured")]
    assert texts[0].startswith(f"services in {config}: lab")
    assert texts[2].startswith(f"base_url {server.url} (the config file)")
    done = doctor("--json", "--service", "shop")
    assert done.code == 2
    assert "has no service shop; it has: lab" in findings(done, "configured")[-1][1]
    config.write_text("[", encoding="utf-8")
    monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
    done = doctor("--json")
    assert done.code == 0
    assert "is not TOML" in findings(done, "configured")[0][1]


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
        ({"HTTPS_PROXY": "A"}, "app.localhost", ""),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "x", "no_proxy": "*"}, "chat.invalid", "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "", "no_proxy": "*"}, "chat.invalid", ""),
        *(
            ({"HTTPS_PROXY": "A", "NO_PROXY": exempt}, host, used)
            for exempt, host, used in [
                ("localhost,*", "chat.invalid", ""),
                ("localhost, CHAT.invalid", "chat.invalid", ""),
                ("invalid", "chat.invalid", ""),
                (".chat.invalid", "chat.invalid", ""),
                ("hat.invalid", "chat.invalid", "HTTPS_PROXY"),
                ("*.invalid", "chat.invalid", "HTTPS_PROXY"),
                (",", "chat.invalid", "HTTPS_PROXY"),
                ("chat.invalid:443", "chat.invalid", ""),
                ("chat.invalid:8443", "chat.invalid", "HTTPS_PROXY"),
                ("192.0.2.7", "192.0.2.7", ""),
                ("192.0.2.0/24", "192.0.2.7", ""),
                ("192.0.2.9/24", "192.0.2.7", ""),
                ("192.0.2.0/255.255.255.0", "192.0.2.7", "HTTPS_PROXY"),
                ("198.51.100.0/24,2001:db8::/32", "192.0.2.7", "HTTPS_PROXY"),
                (".2.7", "192.0.2.7", "HTTPS_PROXY"),
                ("2001:db8::/32", "[2001:db8::7]", ""),
                ("[2001:db8::7]:443", "[2001:db8::7]", ""),
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
        client = Client(url, "s3cret", "example", timeout=0.3, max_retries=0)
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


def test_a_proxy_that_connects_to_the_host(doctor, authority, monkeypatch):
    from secure_server import SecureServer

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
    assert "the server does not speak TLS; check the port and the scheme of base_url" in text


def test_a_server_that_requires_a_client_certificate(doctor, authority, secure):
    context = authority.context("localhost")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    authority.trusted_by(context)
    with secure(context):
        done = doctor("--json", "--ca-bundle", authority.file)
    assert done.code == 5
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert "requires a client certificate" in text
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
    assert "it must offer TLS 1.2 or 1.3" in text
    assert "check the scheme" not in done.out


@pytest.fixture
def service_finding(
    doctor: Callable[..., Done], scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[tuple[str, str]]]:
    """What is said of a service that gives these answers."""

    def run(*script: Any) -> list[tuple[str, str]]:
        for name, value in settings_of(scripted(*script)).items():
            monkeypatch.setenv(name, value)
        return findings(doctor("--json"), "service")

    return run


PAGE = "<!DOCTYPE html>\n<html><head><title>\n Access &amp; denied </title></head></html>"


@pytest.mark.parametrize(
    ("status", "also"),
    [
        (401, "copy the API Secret Key again"),
        (403, "ask the service's operators what this API Secret Key may read"),
        (404, "check its path"),
        (502, ""),
        (200, "check base_url"),
    ],
)
def test_a_page_of_something_in_between_is_named(service_finding, status, also):
    def page(text: str) -> list[tuple[str, str]]:
        body = answer(status, text, content_type="text/html")
        return service_finding(body, answer(404))

    [(state, text), *_] = page(PAGE)
    assert state == "problem"
    advice = text.rpartition(" -> ")[2]
    assert advice.startswith("the answer is a web page (Access & denied): something in front of")
    assert "; if it was the service: " in advice if also else "if it was" not in advice
    assert also in advice
    [(_, text), *_] = page("<html><body>no title</body></html>")
    assert " -> the answer is a web page: " in text
    [(_, text), *_] = page('{"error": "<html>"}')
    assert "web page" not in text


def test_a_network_that_wants_a_login(service_finding):
    [(_, text), *_] = service_finding(answer(511, PAGE, content_type="text/html"), answer(404))
    assert " -> this network wants a login (RFC 6585): open any page in a browser" in text
    away = answer(302, headers={"location": "https://login.example.com/"})
    [(_, text)] = service_finding(away)
    assert "if it has moved, set base_url to its new address" in text
    assert " -> or this network wants a login: open any page" in text


def one_user(**fields: Any) -> bytes:
    return answer(200, {"limit": 1, "offset": 0, "total": 1, "users": [{"id": 5} | fields]})


def test_values_of_another_type_are_a_warning(service_finding):
    attributes = [{"name": 17, "value": "x", "more": 1}, {"name": None, "value": False}]
    row = one_user(
        created_at="Sat, 06 Jun 2026 15:06:34 GMT",
        name="Ada",
        email=None,
        last_url=0,
        undocumented="x",
        user_attributes=attributes,
    )
    [_, (state, text)] = service_finding(row, answer(404))
    assert state == "warning"
    assert text.startswith(
        "values of another type or form than documented: created_at, last_url, "
        "user_attributes.name, user_attributes.value -> "
    )
    [(state, _)] = service_finding(one_user(name="Ada", undocumented=1), answer(404))
    assert state == "ok"


@pytest.mark.parametrize(("sent", "kind"), [("5", "texts"), (5.5, "not integers")])
def test_ids_that_are_no_integers(service_finding, sent, kind):
    [(state, text)] = service_finding(one_user(id=sent))
    assert state == "problem"
    assert f" -> the service's ids are {kind}, and backread needs integers" in text
    assert "base_url" not in text


def dated(seconds: float) -> Callable[[Request], bytes]:
    """Answers as a service whose clock is that much ahead of this machine's."""

    def respond(request: Request) -> bytes:
        there = datetime.now(UTC) + timedelta(seconds=seconds)
        headers = {"date": format_datetime(there, usegmt=True)}
        if request.query:
            page = {"limit": 1, "offset": 0, "total": 1, "users": [{"id": 5}]}
            return answer(200, page, headers)
        return answer(404, {}, headers)

    return respond


@pytest.mark.parametrize(
    ("seconds", "state", "said"),
    [
        (0, "ok", "agrees with the service's"),
        (3600, "warning", r"this machine's clock is 3,(59\d|60\d) s behind the service's"),
        (-86_400, "warning", r"this machine's clock is 86,(39\d|4\d\d) s ahead of the service's"),
    ],
)
def test_clocks_are_compared(doctor, monkeypatch, seconds, state, said):
    with ScriptedServer(dated(seconds)) as scripted:
        for name, value in settings_of(scripted).items():
            monkeypatch.setenv(name, value)
        done = doctor("--json")
    assert done.code == 0
    [(found, text)] = findings(done, "clock")
    assert found == state
    assert re.search(said, text)


@pytest.mark.parametrize(
    "date",
    ["soon", "Mon, 23 Nov 99999999999999999999 18:00:00 GMT",
     "Mon, 23 Nov 2026 99999999999999999999:00:00 GMT",
     "Mon, 23 Nov 2026 18:00:00 +99999999999999999999"],
)  # fmt: skip
def test_a_date_that_is_none_is_no_error(doctor, monkeypatch, date):
    def respond(request: Request) -> bytes:
        users = {"limit": 1, "offset": 0, "total": 1, "users": [{"id": 5}]}
        return answer(200 if request.query else 404, users, {"date": date})

    with ScriptedServer(respond) as scripted:
        for name, value in settings_of(scripted).items():
            monkeypatch.setenv(name, value)
        done = doctor("--json")
    assert done.code == 0
    [(state, text)] = findings(done, "clock")
    assert (state, "not compared" in text) == ("ok", True)


def test_a_hostile_service_cannot_draw_on_the_terminal(doctor, monkeypatch):
    with ScriptedServer(lambda request: answer(403, "\x1b[2J\u202e" * 9)) as scripted:
        for name, value in settings_of(scripted).items():
            monkeypatch.setenv(name, value)
        done = doctor()
    assert done.code == 4
    assert not re.search("[\x1b\u202e]", done.out)


@pytest.fixture
def chats(server: MockServer, tmp_path: Path) -> Path:
    with server.client() as client:
        Mirror(tmp_path / "chats").sync(client)
    return tmp_path / "chats"


def test_a_folder_that_is_no_mirror(doctor, tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        done = doctor("--json", folder)
        assert done.code == 7
        [(state, text)] = findings(done, "mirror")
        assert state == "problem"
        assert str(folder) in text


def test_a_mirror_that_is_being_synced(doctor, chats):
    with writer_lock(chats):
        done = doctor("--json", chats)
    assert any("a sync is going on, by " in text for _, text in findings(done, "mirror"))
    assert ("ok", "no sync is going on, and none is unfinished -> ") in findings(
        doctor("--json", chats), "mirror"
    )


def test_a_mirror_whose_last_run_was_partial(doctor, chats, server):
    with server.client() as client:
        Mirror(chats).sync(client, mode="full", max_requests=5)
    done = doctor("--json", chats)
    assert done.code == 0
    warnings = [text for state, text in findings(done, "mirror") if state == "warning"]
    assert "the last run was partial -> the next sync continues it" in warnings


def test_a_full_disk_is_told_beforehand(doctor, chats, monkeypatch):
    usage = shutil.disk_usage(chats)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    warnings = [
        text for state, text in findings(doctor("--json", chats), "mirror") if state != "ok"
    ]
    assert len(warnings) == 1
    assert "its disk has 1 kB free -> free some space" in warnings[0]


def test_a_sync_of_given_users_says_nothing_of_the_list_of_users(doctor, chats, server):
    with server.client() as client:
        Mirror(chats).sync(client, users=server.world.user_ids()[:1])
    states = [state for state, _ in findings(doctor("--json", chats), "mirror")]
    assert states
    assert {*states} == {"ok"}


def test_a_database_that_is_lost(doctor, chats):
    (chats / "mirror.duckdb").unlink()
    done = doctor("--json", chats)
    assert done.code == 7
    problems = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert problems == [
        "its mirror.duckdb is missing: it can be read, and not synced -> sync into a new folder"
    ]


def test_a_published_file_that_is_damaged_within(doctor, chats, server):
    """A sync looks at its length and its ends only, and links it into the next snapshot."""
    [file] = chats.glob("published/0*/messages/*.parquet")
    content = file.read_bytes()
    middle = len(content) // 3
    file.write_bytes(content[:middle] + bytes(200) + content[middle + 200 :])
    done = doctor("--json", chats)
    assert done.code == 7
    [text] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert f"{file} is damaged -> delete it, and sync again" in text
    file.unlink()
    with server.client() as client:
        Mirror(chats).sync(client)
    assert {state for state, _ in findings(doctor("--json", chats), "mirror")} == {"ok"}


@pytest.mark.parametrize("damaged", [b"", b"no database" * 1000])
def test_a_database_that_is_damaged(doctor, chats, damaged):
    (chats / "mirror.duckdb").write_bytes(damaged)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert problem.startswith("its mirror.duckdb is damaged -> what was published can be read")


def test_a_log_whose_end_is_lost(doctor, chats):
    pytest.importorskip("pyarrow")
    from mirrors import leave_torn_log

    leave_torn_log(chats)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert problem.startswith("the end of its mirror.duckdb.wal is damaged, as by a power cut -> ")


class KilledError(BaseException):
    """Raised in place of a kill."""


def killed(*arguments: object) -> None:
    raise KilledError


@pytest.mark.parametrize("cause", ["forget", "retention"])
def test_a_removal_that_is_not_complete(doctor, backread, chats, server, monkeypatch, cause):
    mirror, gone = Mirror(chats, retention=0), server.world.user_ids()[3]
    before = server.world.snapshot()
    incomplete = "a removal is not complete"
    with server.client() as client:
        if cause == "retention":
            server.world.remove_user(gone)
            Mirror(chats).sync(client, mode="full")
        remove = partial(mirror.forget, gone) if cause == "forget" else partial(mirror.sync, client)
        with monkeypatch.context() as patched:
            patched.setattr("backread.mirror.purge._publish_what_remains", killed)
            with pytest.raises(KilledError):
                remove()
        server.world.restore(before)
        assert mirror.sql("SELECT count(*) FROM users WHERE id = ?", [gone]).fetchall() == [(1,)]
        done = doctor("--json", chats)
        assert done.code == 7
        [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
        assert problem.startswith(f"{incomplete}: ")
        assert problem.endswith(" -> run `backread sync` or `backread forget` again")
        assert incomplete in backread("runs", chats).out
        with writer_lock(chats):
            # What goes on is not incomplete.
            assert incomplete not in backread("runs", chats).out
            assert incomplete not in doctor("--json", chats).out
        Mirror(chats).sync(client)
    assert doctor("--json", chats).code == 0
    assert incomplete not in backread("runs", chats).out


@pytest.mark.parametrize("place", ["mirror.forget.delete_users", "mirror.purge.count_change"])
def test_a_removal_that_was_rolled_back_is_not_incomplete(
    doctor, chats, server, monkeypatch, place
):
    mirror = Mirror(chats)
    with monkeypatch.context() as patched:
        patched.setattr(f"backread.{place}", killed)
        with pytest.raises(KilledError):
            mirror.forget(server.world.user_ids()[3])
    assert doctor("--json", chats).code == 0


def test_a_removal_that_was_killed_before_it_began_is_forgotten_by_the_next_sync(
    doctor, chats, server
):
    mark_removal(chats)
    assert doctor("--json", chats).code == 7
    with server.client() as client:
        Mirror(chats).sync(client)
    assert doctor("--json", chats).code == 0


def test_a_folder_that_may_not_be_read(doctor, chats, monkeypatch):
    def refuse(folder: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "is_dir", refuse)
    done = doctor("--json", chats)
    assert done.code == 7
    [(state, text)] = findings(done, "mirror")
    assert (state, f"{chats} cannot be read: Permission denied" in text) == ("problem", True)


def test_a_run_that_ends_in_the_future(doctor, chats, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(days=365)

    monkeypatch.setattr("backread.cli.doctor.mirror.datetime", Earlier)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert "in the future" in problem
    assert "a clock was wrong" in problem
