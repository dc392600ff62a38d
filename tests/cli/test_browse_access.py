"""`backread browse` as a command and a server: who gets in, broken connections, how it ends."""

import http.client
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

pytest.importorskip("pyarrow")

from backread._browse import BrowseServer, server, site
from backread._browse.site import CONNECTIONS
from backread.errors import MirrorError
from helpers import browse_client
from helpers.command_line import COMMAND, posix_only
from helpers.waiting import PATIENCE, wait_for

own = browse_client.own
stranger = browse_client.stranger
folder = browse_client.folder
running = browse_client.running
visitor = browse_client.visitor


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(stranger):
    reply = stranger.get(stranger.entrance)
    assert reply.status == 303
    assert "token" not in reply.headers["Location"]
    cookie = reply.headers["Set-Cookie"]
    assert re.fullmatch(r"backread-(\d+)=\S+; Path=/\w{12}/; HttpOnly; SameSite=Strict", cookie)
    assert cookie.startswith(f"backread-{stranger.port}=")
    token = stranger.entrance.partition("=")[2]
    assert len(token) > 40
    assert token not in cookie
    page = stranger.enter().get(stranger.path)
    assert page.status == 200
    assert "<title>backread browse</title>" in page.text
    assert token not in page.text


def test_nothing_is_shown_without_the_cookie(visitor):
    cookie, visitor.cookie = visitor.cookie, None
    for target in ("", "browse.js", "api/people", "api/window?user=1"):
        reply = visitor.get(visitor.path + target)
        assert reply.status == 403, target
        assert "Open the address that backread browse printed" in reply.text
        assert "Ada" not in reply.text
    for wrong in (f"{cookie}x", cookie.replace("=", "=x"), cookie.upper(), "a=b; c", "\xff=\xfe"):
        assert visitor.get(f"{visitor.path}api/state", Cookie=wrong).status == 403


@pytest.mark.parametrize("token", ["", "%ff", "a" * 43])
def test_a_wrong_token_opens_nothing(stranger, token):
    reply = stranger.get(f"/?token={token}")
    assert reply.status == 403
    assert "Set-Cookie" not in reply.headers


NEEDS_PROC = pytest.mark.skipif(not CONNECTIONS[0].exists(), reason="needs Linux's /proc")


@NEEDS_PROC
@pytest.mark.parametrize(
    ("uid", "status"),
    [(os.geteuid() if os.name != "nt" else 0, 303), (65_534, 403), (None, 403)],
)
def test_it_opens_for_the_browsers_user_alone(
    running, stranger, tmp_path, monkeypatch, uid, status
):
    """Another user could see it in the list of processes, and be faster than the browser."""
    once = running.one_time_url().removeprefix(f"http://{stranger.host}")
    connections = tmp_path / "tcp"
    monkeypatch.setattr(site, "CONNECTIONS", (connections, tmp_path / "tcp6"))
    monkeypatch.setattr(os, "geteuid", lambda: 1_000 if uid == 65_534 else uid)
    with socket.socket() as sent:
        sent.bind(("127.0.0.1", 0))
        there, here = sent.getsockname()[1], stranger.port
        ends = [f"0100007F:{there:04X}", f"0100007F:{here:04X}"]
        rows = [f" 8: {ends[1]} {ends[0]} 01 0:0 00:0 00000000 1000 0 1"]
        if uid is not None:
            rows.append(f" 9: {ends[0]} {ends[1]} 01 0:0 00:0 00000000 {uid} 0 1")
        connections.write_text("\n".join(["its names", *rows]))
        sent.connect(("127.0.0.1", here))
        sent.sendall(f"GET {once} HTTP/1.0\r\nHost: {stranger.host}\r\n\r\n".encode())
        assert sent.recv(100).split()[1] == str(status).encode()
    # A refused request leaves the address usable, and a table without rows refuses no request.
    connections.write_text("its names\n")
    assert stranger.get(once).status == (303 if status == 403 else 403)


@pytest.mark.parametrize("host", ["evil.example.com:{port}", "127.0.0.1", ""])
def test_other_names_of_this_machine_are_refused(visitor, host):
    """So that no page elsewhere reads this one by DNS rebinding."""
    local = f"localhost:{visitor.port}"
    assert visitor.get(f"{visitor.path}api/state", Host=local).status == 200
    for target in (visitor.path, visitor.entrance, f"{visitor.path}api/people"):
        reply = visitor.get(target, Host=host.format(port=visitor.port))
        assert reply.status == 421
        assert "Ada" not in reply.text


@pytest.mark.parametrize(
    "headers",
    [{"sec_fetch_site": "cross-site"}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "null"}],
)
def test_what_another_page_asks_for_is_refused(visitor, headers):
    assert visitor.get(f"{visitor.path}api/people", **headers).status == 403


@pytest.mark.parametrize("method", ["HEAD", "POST", "X"])
def test_it_can_only_be_read(visitor, method):
    reply = visitor.get(f"{visitor.path}api/people", method=method)
    assert reply.status == 405
    assert reply.headers["Allow"] == "GET"


@pytest.mark.parametrize(
    "target",
    [
        "{path}server.py", "{path}../../../../etc/passwd", "{path}%2e%2e/x", "/etc/passwd",
        "{path}api/close", "{path}api/__class__", "//evil.example.com/", "{path}api/state/x",
    ],
)  # fmt: skip
def test_there_is_nothing_else(visitor, target):
    reply = visitor.get(target.format(path=visitor.path))
    assert reply.status == 404
    assert "Set-Cookie" not in reply.headers


def test_every_reply_confines_the_page(visitor):
    targets = ("", "browse.js", "bubbles.css", "api/people", "api/window?user=999")
    replies = [visitor.get(f"{visitor.path}{target}") for target in targets]
    replies += [visitor.get(visitor.entrance), visitor.get("/")]
    replies.append(visitor.get(visitor.path, method="POST"))
    for reply in replies:
        assert site.HEADERS.items() <= reply.headers.items()
        assert "Python" not in reply.headers["Server"]
    policy = dict(each.split(" ", 1) for each in site.POLICY.split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert site.HEADERS["Referrer-Policy"] == "no-referrer"
    assert site.HEADERS["Cache-Control"] == "no-store"


def test_the_page_loads_nothing_from_elsewhere(running, visitor):
    for name in ("", "browse.js", "browse.css", "bubbles.css"):
        text = visitor.get(visitor.path + name).text
        assert re.findall(r"(?:https?:)?//[\w.]+\.\w+", text) == []
    page = visitor.get(visitor.path).text
    assert running.server_address[0] == "127.0.0.1"
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert sorted(loaded) == ["browse.css", "browse.js", "bubbles.css", "icon.svg"]
    assert not re.search(r"<style|style=|<script>| on\w+=", page)
    for name in loaded:
        assert visitor.get(visitor.path + name).status == 200


# --- Slow, many and broken connections ------------------------------------------------------------


def test_connections_that_say_nothing_keep_nobody_out_and_are_closed(
    running, visitor, own, monkeypatch
):
    silent = [socket.create_connection(("127.0.0.1", running.server_port)) for _ in range(200)]
    try:
        for each in silent[::2]:
            each.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert visitor.ask("people", words="lovelace")["total"] == 1
    finally:
        for each in silent:
            each.close()
    monkeypatch.setattr(server._Handler, "timeout", 0.1)
    with (
        BrowseServer(own) as impatient,
        socket.create_connection(("127.0.0.1", impatient.server_port), PATIENCE) as slow,
    ):
        slow.sendall(b"GET / HT")
        assert slow.recv(1) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 70_000,
        b"GET http://evil.example.com/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_for_it_harms_nothing(running, visitor, sent, capfd):
    with socket.create_connection(("127.0.0.1", running.server_port), PATIENCE) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        try:
            while reply := raw.recv(4_096):
                assert b"Ada" not in reply
        except ConnectionResetError:
            pass
    assert visitor.ask("state")["status"] == 200
    assert capfd.readouterr().err == ""


# --- The command ----------------------------------------------------------------------------------


def begin(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "browse", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def address_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)\n", line)
    assert found, line
    return int(found[1]), found[2]


def entered(port: int, target: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", target)
    return connection.getresponse().status


@posix_only
@pytest.mark.parametrize("number", [1, signal.SIGINT, signal.SIGTERM, 9])
def test_the_command_prints_the_address_and_leaves_nothing_behind(own, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("below nohup a child ignores the signal, too")
    before = {path: path.stat().st_mtime_ns for path in own.rglob("*")}
    with begin(own, "--no-open") as process:
        port, target = address_of(process)
        # A browser keeps connections ready that ask for nothing.
        with socket.create_connection(("127.0.0.1", port)):
            assert entered(port, target) == 303
            assert process.stderr is not None
            assert process.stderr.readline() == "Ctrl-C ends it\n"
            process.send_signal(number)
            assert process.communicate(timeout=PATIENCE) == ("", "")
    assert process.returncode == (-9 if number == 9 else 0)
    assert {path: path.stat().st_mtime_ns for path in own.rglob("*")} == before


@posix_only
def test_a_browser_is_opened_with_an_address_that_works_once(own, tmp_path):
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o700)
    with begin(own, BROWSER=str(browser)) as process:
        port, target = address_of(process)
        wait_for(seen.exists)
        opened = seen.read_text().strip()
        assert opened.startswith(f"http://127.0.0.1:{port}/?token=")
        once = opened.removeprefix(f"http://127.0.0.1:{port}")
        assert once != target
        assert [entered(port, once), entered(port, once)] == [303, 403]
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_a_port_in_use_and_a_folder_that_is_no_mirror_are_one_sentence(own, backread, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = backread("browse", own, "--no-open", "--port", port)
    assert (done.code, done.out) == (2, "")
    assert f"port {port} is in use; choose another with --port" in done.line
    before = set(threading.enumerate())
    with pytest.raises(MirrorError, match="nothing is published"):
        BrowseServer(tmp_path)
    assert set(threading.enumerate()) <= before
    assert backread("browse", tmp_path / "nothing").code == 7
