"""``backread doctor``: what is wrong with the settings, the service, and a mirror."""

import re
import shutil
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from backread import BackreadError, Client, Mirror
from backread.cli.doctor.network import proxy_of_environment
from backread.mirror.store.folder import writer_lock
from helpers.command_line import Done, findings, on_one_line, settings_of
from helpers.file_modes import posix_only
from helpers.proxy_server import ProxyServer
from helpers.scripted_server import Request, ScriptedServer, answer

SECRET = "s3cret-of-mine"


def test_nothing_is_wrong(doctor, server, tmp_path):
    folder = tmp_path / "chats"
    with server.client() as client:
        Mirror(folder).sync(client)
    before = server.counts()
    done = doctor("--format", "text", "--max-retries", "9", folder)
    after = server.counts()
    assert done.code == 0
    said = on_one_line(done)
    assert f"ok base_url {server.url} (BACKREAD_BASE_URL)" in said
    assert "ok the API secret is set (BACKREAD_API_SECRET)" in said
    assert "it has 120 users" in said
    assert "ok every list is proved" in said
    assert done.out.endswith("\n\n0 problems, 0 warnings\n")
    sent = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert sent == {"users": 1, "user": 1}


def test_a_missing_setting_one_that_the_command_does_not_have_and_none(
    doctor, settings, monkeypatch
):
    monkeypatch.delenv("BACKREAD_VENDOR")
    monkeypatch.setenv("BACKREAD_VENDER", "x")
    done = doctor("--format", "json")
    assert done.code == 2
    [_, warning, missing] = findings(done, "configured")
    said = "no setting of backread: BACKREAD_VENDER -> correct the name, or leave it out"
    assert warning == ("warning", said)
    assert missing[0] == "problem"
    assert "vendor" in missing[1]
    assert findings(done, "service") == []
    for name in [*settings, "BACKREAD_VENDER"]:
        monkeypatch.delenv(name, raising=False)
    done = doctor()
    assert done.code == 0
    said = on_one_line(done)
    assert "warning no service is configured -> to read a service, set BACKREAD_BASE_URL" in said
    assert "run: backread demo" in said


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("BACKREAD_API_SECRET", 4, "copy the API Secret Key again"),
        ("BACKREAD_VENDOR", 2, "check vendor or BACKREAD_VENDOR"),
        ("BACKREAD_BASE_URL", 2, "check base_url, which must be all that is in front of"),
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
    assert f"in {file} (BACKREAD_SECRET_FILE), mode 0644 -> run: chmod 600 {file}" in warning
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
    assert texts[1].startswith(f"base_url {server.url} (the service lab of {config})")
    done = doctor("--json", "--service", "shop")
    assert done.code == 2
    assert "has no service shop; it has: lab" in findings(done, "configured")[-1][1]


@pytest.mark.parametrize("status", [200, 502])
def test_a_web_page_of_something_in_between_is_named(doctor, scripted, monkeypatch, status):
    page = answer(status, "\n<html><title>Login</title></html>", content_type="text/html")
    for name, value in settings_of(scripted(page)).items():
        monkeypatch.setenv(name, value)
    [(state, text)] = findings(doctor("--json"), "service")
    assert state == "problem"
    assert " -> the answer is a web page: something in front of the service may have" in text


@pytest.mark.parametrize(
    ("seconds", "state", "said"),
    [
        (0, "ok", "agrees with the service's"),
        (3600, "warning", r"this machine's clock is 3,(59\d|60\d) s behind the service's"),
        (-86_400, "warning", r"this machine's clock is 86,(39\d|4\d\d) s ahead of the service's"),
        ("Mon, 23 Nov 2026 18:00:00 +99999999999999999999", "ok", "not compared"),
    ],
)
def test_clocks_are_compared(doctor, monkeypatch, seconds, state, said):
    def respond(request: Request) -> bytes:
        date = seconds
        if not isinstance(date, str):
            date = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
        page = {"limit": 1, "offset": 0, "total": 1, "users": [{"id": 5}]}
        return answer(200 if request.query else 404, page, {"date": date})

    with ScriptedServer(respond) as scripted:
        for name, value in settings_of(scripted).items():
            monkeypatch.setenv(name, value)
        done = doctor("--json")
    assert done.code == 0
    [(found, text)] = findings(done, "clock")
    assert found == state
    assert re.search(said, text)


@pytest.fixture
def elsewhere(no_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names a service on another machine."""
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.invalid")
    monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    monkeypatch.setenv("BACKREAD_VENDOR", "example")


@pytest.mark.parametrize(
    ("name", "url", "place"),
    [
        ("BACKREAD_BASE_URL", "https://{}", "{}"),
        # urllib cannot read this address, which the client can.
        ("HTTPS_PROXY", "http://me:[passw0rd@{}", "the proxy {} (HTTPS_PROXY)"),
    ],
)
def test_a_closed_port(doctor, elsewhere, monkeypatch, name, url, place):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    monkeypatch.setenv(name, url.format(address))
    done = doctor("--json")
    assert done.code == 5
    [(state, text)] = findings(done, "reachable")
    assert state == "problem"
    assert f"{place.format(address)} cannot be connected to: " in text
    assert "passw0rd" not in done.out


@pytest.mark.parametrize(("status", "said"), [(403, "the proxy did not connect"), (407, "Basic")])
def test_a_proxy_that_refuses_the_host_is_asked_once(doctor, elsewhere, monkeypatch, status, said):
    with ProxyServer(refusal=f"HTTP/1.1 {status} No\r\n\r\n".encode()) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://ada:passw0rd@{proxy.address}")
        done = doctor("--json")
    assert done.code == 5
    [(state, text)] = findings(done, "reachable")
    assert state == "ok"
    assert f"connected to the proxy {proxy.address} (HTTPS_PROXY) in " in text
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert said in text
    # More attempts with a wrong password might lock the account.
    [request] = proxy.requests
    assert SECRET not in str(request)
    assert "passw0rd" not in done.out
    assert SECRET not in done.out


@pytest.mark.parametrize(
    ("environment", "host", "used"),
    [
        ({"HTTPS_PROXY": "A", "https_proxy": "B"}, "chat.invalid", "HTTPS_PROXY"),
        ({"https_proxy": "A", "ALL_PROXY": "B"}, "chat.invalid", "https_proxy"),
        ({"HTTPS_PROXY": "", "https_proxy": "A", "all_proxy": "B"}, "chat.invalid", "https_proxy"),
        ({"HTTPS_PROXY": "A"}, "app.localhost", ""),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "localhost, CHAT.invalid"}, "chat.invalid", ""),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "hat.invalid"}, "chat.invalid", "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "192.0.2.9/24"}, "192.0.2.7", ""),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "*"}, "192.0.2.7", "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "A", "NO_PROXY": "2001:db8::/32"}, "[2001:db8::7]", ""),
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


@pytest.fixture
def secure(authority: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Names a service over TLS in the environment."""
    from helpers.tls_server import SecureServer

    def serve(host: str = "localhost", **issued: Any) -> Any:
        server = SecureServer(authority.context(host, **issued), host)
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        return server

    return serve


def test_a_trusted_tls_certificate_also_behind_a_proxy(doctor, authority, secure):
    with secure("chat.example.com") as server, ProxyServer(server.server_port) as proxy:
        options = ("--proxy", f"http://{proxy.address}", "--ca-bundle", authority.file)
        done = doctor("--json", *options)
    assert f"connected to the proxy {proxy.address} (proxy)" in done.out
    assert "the service answered in" in done.out
    with secure():
        *_, (state, text) = findings(doctor("--json", "--ca-bundle", authority.file), "reachable")
    assert state == "ok"
    assert "the TLS certificate is trusted, issued by authority" in text
    soon = datetime.now(UTC) + timedelta(days=5)
    with secure(not_after=soon):
        *_, (state, text) = findings(doctor("--json", "--ca-bundle", authority.file), "reachable")
    assert state == "warning"
    assert f"valid until {soon:%Y-%m-%d} -> it expires soon" in text


@pytest.mark.parametrize("wrong", ["expired", "unknown", "no TLS"])
def test_tls_that_fails(doctor, authority, secure, server, monkeypatch, wrong):
    past = datetime.now(UTC) - timedelta(days=3)
    issued = {"not_before": past - timedelta(days=9), "not_after": past}
    with secure(**issued if wrong == "expired" else {}):
        if wrong == "no TLS":
            monkeypatch.setenv("BACKREAD_BASE_URL", server.url.replace("http:", "https:"))
        trusted = ("--ca-bundle", authority.file) if wrong == "expired" else ()
        done = doctor("--json", *trusted)
    assert done.code == 5
    *_, (state, text) = findings(done, "reachable")
    assert (state, text.startswith("TLS fails: ")) == ("warning", True)
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    said = {"expired": "certificate has expired", "unknown": "name that authority's PEM file"}
    assert said.get(wrong, "the server does not speak TLS: check the port") in text


# --- the mirror -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def synced(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor") / "chats"
    with server.client() as client:
        Mirror(folder).sync(client)
    return folder


@pytest.fixture
def chats(synced: Path, tmp_path: Path) -> Path:
    """A mirror that a test may damage."""
    return Path(shutil.copytree(synced, tmp_path / "chats", symlinks=True))


def said(done: Done, state: str = "problem") -> list[str]:
    return [text for found, text in findings(done, "mirror") if found == state]


def test_a_folder_that_is_no_mirror(doctor, tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        done = doctor("--json", folder)
        assert done.code == 7
        assert str(folder) in said(done)[0]


def test_a_sync_that_goes_on_what_is_not_proved_and_a_full_disk(doctor, chats, server, monkeypatch):
    with writer_lock(chats):
        done = doctor("--json", chats)
    assert any("a sync is going on, by " in text for text in said(done, "ok"))
    with server.client() as client:
        Mirror(chats).sync(client, mode="full", max_requests=5)
    usage = shutil.disk_usage(chats)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    done = doctor("--json", chats)
    assert (done.code, "a sync is going on" in done.out) == (0, False)
    warnings = " ".join(said(done, "warning"))
    assert " -> the next sync continues" in warnings
    assert "its disk has 1 kB free -> free some space" in warnings
    assert "every list is proved" not in done.out


def test_a_published_file_that_is_damaged_within(doctor, chats, server):
    """A sync looks at its length and its ends only, and links it into the next snapshot."""
    [file] = chats.glob("published/0*/messages/*.parquet")
    content = file.read_bytes()
    middle = len(content) // 3
    file.write_bytes(content[:middle] + bytes(200) + content[middle + 200 :])
    done = doctor("--json", chats)
    assert done.code == 7
    [text] = said(done)
    assert f"{file} is damaged -> delete it, and sync again" in text
    file.unlink()
    with server.client() as client:
        Mirror(chats).sync(client)
    assert {state for state, _ in findings(doctor("--json", chats), "mirror")} == {"ok"}


def test_a_database_that_is_damaged_or_lost(doctor, chats):
    (chats / "mirror.duckdb").write_bytes(b"no database" * 1000)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = said(done)
    assert problem.startswith("its mirror.duckdb is damaged -> what was published can be read")
    (chats / "mirror.duckdb").unlink()
    done = doctor("--json", chats)
    assert done.code == 7
    assert said(done) == [
        "its mirror.duckdb is missing: it can be read, and not synced -> sync into a new folder"
    ]


def test_a_removal_that_is_not_complete(doctor, backread, chats, server, monkeypatch):
    incomplete = "a removal is not complete"
    with monkeypatch.context() as patched:
        # Without arguments it fails, in place of a kill.
        patched.setattr("backread.mirror.rights.purge._publish_what_remains", lambda: None)
        with pytest.raises(TypeError):
            Mirror(chats).forget(server.world.user_ids()[3])
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = said(done)
    assert problem.startswith(f"{incomplete}: ")
    assert problem.endswith(" -> run `backread sync` or `backread forget` again")
    assert incomplete in backread("runs", chats).error
    with writer_lock(chats):
        # What goes on is not incomplete.
        assert incomplete not in backread("runs", chats).error
        assert incomplete not in doctor("--json", chats).out
    with server.client() as client:
        Mirror(chats).sync(client)
    assert doctor("--json", chats).code == 0


def test_a_run_that_ends_in_the_future(doctor, chats, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) - timedelta(days=365)

    monkeypatch.setattr("backread.cli.doctor.mirror.datetime", Earlier)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = said(done)
    assert "in the future, so a clock was wrong" in problem
