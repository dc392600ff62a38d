"""The page of `backread browse`, as what asks for it sees it: who gets in, and what it says."""

import html
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from backread._browse import BrowseServer, api, client, server, site
from backread._browse.client import CONNECTIONS
from backread.errors import MirrorError
from backread.mirror import Mirror
from backread.mirror.interruptible_reader import InterruptibleReader
from backread.mirror.search import search_messages
from browse_rows import message
from command_line import COMMAND, posix_only
from mirrors import BatchSource, batch
from strangers import ADDRESSES, HOSTILE
from waiting import PATIENCE, wait_for

USERS: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada Lovelace", "email": "ada@example.com"},
    {"id": 2, "name": "Nobody Spoke", "email": None},
    *(
        {"id": 100 + at, "name": text, "email": text, "reference": text, "last_url": text}
        for at, text in enumerate(HOSTILE)
    ),
]
MESSAGES = [
    message(1, 1, "Where is my invoice?"),
    message(1, 2, "Here it is", sender_type="operator", sender_id=7, sender_forename="Grace"),
    message(1, 3, "x" * 5_000 + " the end", read_by_operator=False),
    *(
        message(
            100 + at,
            1_000 + at,
            f"hostile {text}",
            sender_name=text,
            file_url=ADDRESSES[at % len(ADDRESSES)],
        )
        for at, text in enumerate(HOSTILE)
    ),
]


def publish(folder: Path, users: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    lists: Any = {each["id"]: "snapshot" for each in users}
    BatchSource(batch(users, messages, swept="linked", lists=lists)).sync_into(folder, "full")


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class Visitor:
    """Somebody who sends requests to a page; ``enter`` gets the cookie."""

    def __init__(self, running: BrowseServer) -> None:
        self.port = running.server_port
        self.host = f"127.0.0.1:{self.port}"
        self.entrance = running.url.removeprefix(f"http://{self.host}")
        self.cookie: str | None = None
        self.path = "/"

    def enter(self) -> "Visitor":
        reply = self.get(self.entrance)
        self.path = reply.headers["Location"]
        self.cookie = reply.headers["Set-Cookie"].split(";")[0]
        return self

    def get(self, target: str, *, method: str = "GET", **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        cookie = {"Cookie": self.cookie} if self.cookie else {}
        given = {"Host": self.host} | cookie | {k.replace("_", "-"): v for k, v in headers.items()}
        connection.putrequest(method, target, skip_host=True)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        reply = Reply(answer.status, dict(answer.getheaders()), answer.read())
        connection.close()
        return reply

    def ask(self, name: str, **parameters: Any) -> Any:
        reply = self.get(f"{self.path}api/{name}?{urlencode(parameters)}")
        assert reply.headers["Content-Type"] == "application/json"
        return reply.json | {"status": reply.status}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browse") / "chats"
    publish(folder, USERS, MESSAGES)
    return folder


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[BrowseServer]:
    errors: list[str] = []
    with BrowseServer(folder, on_error=errors.append) as running:
        yield running
    assert errors == []


@pytest.fixture
def stranger(running: BrowseServer) -> Visitor:
    return Visitor(running)


@pytest.fixture
def visitor(running: BrowseServer) -> Visitor:
    return Visitor(running).enter()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A mirror that a test may change."""
    publish(tmp_path / "chats", USERS[:2], MESSAGES[:3])
    return tmp_path / "chats"


# --- Who gets in ----------------------------------------------------------------------------------


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
    for target in ("", "browse.js", "api/state", "api/people", "api/window?user=1"):
        reply = visitor.get(visitor.path + target)
        assert reply.status == 403, target
        assert "Open the address that backread browse printed" in reply.text
        assert "Ada" not in reply.text
    for wrong in (f"{cookie}x", cookie.replace("=", "=x"), cookie.upper(), "a=b; c", "\xff=\xfe"):
        assert visitor.get(f"{visitor.path}api/state", Cookie=wrong).status == 403


@pytest.mark.parametrize("token", ["", "x", "é", "%ff", "a" * 43])
def test_a_wrong_token_opens_nothing(stranger, token):
    reply = stranger.get(f"/?token={token}" if token != "é" else "/?token=%C3%A9")
    assert reply.status == 403
    assert "Set-Cookie" not in reply.headers


def test_the_address_that_a_program_is_started_with_opens_once(running, stranger):
    once = running.one_time_url().removeprefix(f"http://{stranger.host}")
    assert once != stranger.entrance
    assert stranger.get(once).status == 303
    assert stranger.get(once).status == 403


@pytest.mark.skipif(not CONNECTIONS.exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("uid", "status"), [(os.geteuid() if os.name != "nt" else 0, 303), (0, 303), (65_534, 403)]
)
def test_it_opens_for_the_browsers_user_alone(
    running, stranger, tmp_path, monkeypatch, uid, status
):
    """Another user could see it in the list of processes, and be faster than the browser."""
    once = running.one_time_url().removeprefix(f"http://{stranger.host}")
    connections = tmp_path / "tcp"
    monkeypatch.setattr(client, "CONNECTIONS", connections)
    monkeypatch.setattr(os, "geteuid", lambda: 1_000 if uid == 65_534 else uid)
    with socket.socket() as sent:
        sent.bind(("127.0.0.1", 0))
        there, here = sent.getsockname()[1], stranger.port
        rows = CONNECTIONS.read_text()
        row = f" 9: 0100007F:{there:04X} 0100007F:{here:04X} 01 0:0 00:0 00000000 {uid} 0 1\n"
        connections.write_text(rows.split("\n")[0] + "\n" + row)
        sent.connect(("127.0.0.1", here))
        sent.sendall(f"GET {once} HTTP/1.0\r\nHost: {stranger.host}\r\n\r\n".encode())
        assert sent.recv(100).split()[1] == str(status).encode()
    # Whoever was refused has not used it up.
    connections.unlink()
    assert stranger.get(once).status == (303 if status == 403 else 403)


@pytest.mark.skipif(not CONNECTIONS.exists(), reason="needs Linux's /proc")
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root to be someone else")
def test_another_user_of_the_machine_cannot_open_it(running, stranger):
    once = running.one_time_url().removeprefix(f"http://{stranger.host}")
    request = f"GET {once} HTTP/1.0\r\nHost: {stranger.host}\r\n\r\n"
    script = f"exec 3<>/dev/tcp/127.0.0.1/{stranger.port}; printf '{request}' >&3; head -c 12 <&3"
    done = subprocess.run(
        ["bash", "-c", script], user=65_534, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.stdout == b"HTTP/1.0 403"
    assert stranger.get(once).status == 303


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:{port}", "127.0.0.1", "0.0.0.0:{port}", ""]
)
def test_other_names_of_this_machine_are_refused(visitor, host):
    """So that no page elsewhere reads this one by DNS rebinding."""
    for target in (visitor.path, visitor.entrance, f"{visitor.path}api/people"):
        reply = visitor.get(target, Host=host.format(port=visitor.port))
        assert reply.status == 421
        assert "Ada" not in reply.text


def test_browsers_leave_out_the_port_80(own):
    class Anyone(client.Client):
        def __init__(self):
            pass

    reader = InterruptibleReader(own)
    page = site.Site(reader, 80, print)
    target = page.entrance(page.token).removeprefix("http://127.0.0.1:80")
    for host, status in (("127.0.0.1", 303), ("localhost:80", 303), ("evil.example.com", 421)):
        assert page.respond(target, {"Host": host}, Anyone()).status == status
    page.close()
    reader.close()


def test_the_name_of_a_header_may_be_in_any_case(visitor):
    with socket.create_connection(("127.0.0.1", visitor.port)) as sent:
        sent.sendall(
            f"GET {visitor.path} HTTP/1.0\r\nhost: {visitor.host}\r\n"
            f"cookie: {visitor.cookie}\r\n\r\n".encode()
        )
        assert sent.recv(12) == b"HTTP/1.0 200"


def test_searches_that_were_given_up_delay_no_other(running, visitor, monkeypatch):
    searched, begun, go_on = [], threading.Event(), threading.Event()

    def slow(reader, words, **options):
        searched.append(words)
        begun.set()
        assert go_on.wait(PATIENCE)
        return search_messages(reader, words, **options)

    monkeypatch.setattr(api, "search_messages", slow)
    first = threading.Thread(target=visitor.ask, args=["search"], kwargs={"words": "invoice"})
    first.start()
    assert begun.wait(PATIENCE)
    for number in range(5):
        with socket.create_connection(("127.0.0.1", visitor.port)) as sent:
            sent.sendall(
                f"GET {visitor.path}api/search?words=gone{number} HTTP/1.0\r\n"
                f"Host: {visitor.host}\r\nCookie: {visitor.cookie}\r\n\r\n".encode()
            )
            wait_for(lambda held=number + 2: len(running._answering) == held)
    go_on.set()
    first.join()
    assert visitor.ask("search", words="invoice")["count"] == 1
    wait_for(lambda: not running._answering)
    assert searched == ["invoice", "invoice"]


def test_localhost_is_a_name_of_the_page(visitor):
    assert visitor.get(f"{visitor.path}api/state", Host=f"localhost:{visitor.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example.com"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"origin": "https://evil.example.com"},
    ],
)
def test_what_another_page_asks_for_is_refused(visitor, headers):
    assert visitor.get(f"{visitor.path}api/people", **headers).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"])
def test_it_can_only_be_read(visitor, method):
    reply = visitor.get(f"{visitor.path}api/people", method=method)
    assert reply.status == 405
    assert reply.headers["Allow"] == "GET, HEAD"


def test_head_has_no_body(visitor):
    reply = visitor.get(visitor.path, method="HEAD")
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    "target",
    [
        "{path}server.py", "{path}../browse.js", "{path}../../../../etc/passwd", "{path}%2e%2e/x",
        "/etc/passwd", "{path}api/", "{path}api/close", "{path}api/__class__", "/favicon.ico",
        "{path}index.html", "//evil.example.com/", "{path}api/state/x",
    ],
)  # fmt: skip
def test_there_is_nothing_else(visitor, target):
    reply = visitor.get(target.format(path=visitor.path))
    assert reply.status == 404
    assert "Set-Cookie" not in reply.headers


def test_every_reply_confines_the_page(visitor):
    replies = [
        visitor.get(target)
        for target in (
            visitor.path,
            f"{visitor.path}browse.js",
            f"{visitor.path}bubbles.css",
            f"{visitor.path}api/people",
            f"{visitor.path}api/window?user=999",
            visitor.entrance,
            "/",
        )
    ]
    replies.append(visitor.get(visitor.path, method="POST"))
    for reply in replies:
        policy = dict(
            each.split(" ", 1) for each in reply.headers["Content-Security-Policy"].split("; ")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert reply.headers["Cache-Control"] == "no-store"
        assert "Python" not in reply.headers["Server"]


def test_the_page_loads_nothing_from_elsewhere(visitor):
    for name in ("", "browse.js", "browse.css", "bubbles.css"):
        text = visitor.get(visitor.path + name).text
        assert re.findall(r"(?:https?:)?//[\w.]+\.\w+", text) == []
    page = visitor.get(visitor.path).text
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert sorted(loaded) == ["browse.css", "browse.js", "bubbles.css", "icon.svg"]
    assert not re.search(r"<style|style=|<script>| on\w+=", page)
    for name in loaded:
        assert visitor.get(visitor.path + name).status == 200


def test_it_listens_on_loopback_only(running):
    assert running.server_address[0] == "127.0.0.1"


# --- What it says ---------------------------------------------------------------------------------


def visible(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def test_the_header_has_the_age_and_the_certificate(visitor):
    state = visitor.ask("state")
    assert state["age"].startswith("Synced ")
    assert state["kind"] == "proved"
    assert state["proof"] == "every list proved complete (linked or better)"
    assert any("The list of users: linked." in each for each in state["details"])


def test_a_list_that_is_not_proved_is_counted(tmp_path):
    lists: Any = {1: "snapshot", 2: "uncertified"}
    users = [{"id": 1}, {"id": 2}, {"id": 3}]
    BatchSource(batch(users, [], swept="snapshot", lists=lists)).sync_into(tmp_path / "m", "full")
    with BrowseServer(tmp_path / "m") as running:
        state = Visitor(running).enter().ask("state")
    assert (state["kind"], state["proof"]) == ("unproved", "2 of 3 message lists not proved")
    assert any("1 never read" in each for each in state["details"])


def test_people_are_listed_searched_and_filtered(visitor):
    wait_for(lambda: visitor.ask("state")["counted"])
    page = visitor.ask("people", words="lovelace")
    assert page["total"] == 1
    assert page["next"] is None
    said = visible(page["html"])
    assert "Ada Lovelace" in said
    assert "3 messages · 1 unread" in said
    assert 'href="#/user/1"' in page["html"]
    assert visitor.ask("people", words="Ada", unread="operator")["total"] == 1
    assert visitor.ask("people", words="Ada", unread="user")["total"] == 0
    assert visitor.ask("people", words="ada", operator=7)["total"] == 1
    assert visitor.ask("people", words="Nobody")["html"].count("no messages") == 1
    assert visitor.ask("people", words="in no name at all") == {
        "html": "", "total": 0, "next": None, "counted": True, "status": 200,
    }  # fmt: skip


def test_operators_are_listed(visitor):
    assert visitor.ask("operators")["operators"] == [{"id": "7", "name": "Grace"}]


def test_pages_of_people_follow_each_other(visitor):
    first = visitor.ask("people", order="id", count=10)
    second = visitor.ask("people", order="id", count=10, offset=first["next"])
    ids = re.findall(r'data-user="(\d+)"', first["html"] + second["html"])
    assert ids == [str(user["id"]) for user in USERS[:20]]


def test_a_conversation_is_shown_as_bubbles_with_a_link_to_each_message(visitor):
    window = visitor.ask("window", user=1)
    assert (window["start"], window["end"], window["total"]) == (0, 3, 3)
    assert (window["first"], window["last"]) == ("1", "3")
    assert "Ada Lovelace" in visible(window["heading"])
    for number in (1, 2, 3):
        assert f'id="message-{number}"' in window["html"]
        assert f'href="#/user/1/message/{number}"' in window["html"]
    assert window["html"].count("br-bubble") == 3


def test_a_long_text_is_shown_whole_on_request(visitor):
    window = visitor.ask("window", user=1)
    assert "the end" not in window["html"]
    assert "1,008 more characters" in window["html"]
    whole = visitor.ask("message", user=1, message=3)
    assert visible(whole["html"]) == MESSAGES[2]["body"]


def test_a_search_leads_to_the_message_in_its_conversation(visitor):
    found = visitor.ask("search", words="INVOICE")
    assert found["count"] == 1
    assert 'href="#/user/1/message/1"' in found["html"]
    assert "<mark>invoice</mark>" in found["html"]
    assert "Ada Lovelace" in visible(found["html"])
    shown = visitor.ask("window", user=1, around=1, words="INVOICE")
    assert "Where is my <mark>invoice</mark>?" in shown["html"]


def test_more_hits_are_counted_from_the_newest(visitor):
    found = visitor.ask("search", words="hostile", count=5)
    assert (found["count"], found["more"], found["next"]) == (5, True, 55)
    assert visitor.ask("search", words="hostile")["count"] == len(HOSTILE)


@pytest.mark.parametrize(
    ("name", "parameters", "status", "said"),
    [
        ("window", {"user": 999}, 404, "has no user 999"),
        ("window", {"user": 1, "around": 999}, 404, "has no message 999"),
        ("window", {"user": "x"}, 400, "user must be a whole number"),
        ("window", {}, 400, "user is missing"),
        ("window", {"user": 9**30}, 400, "user must be a whole number"),
        ("window", {"user": 1, "around": 1, "before": 2}, 400, "only one"),
        ("people", {"since": "soon"}, 400, "since must be a date"),
        ("people", {"since": "2024-02-01", "until": "2024-01-01"}, 400, "since must be earlier"),
        ("people", {"order": "drop table"}, 400, "order must be"),
        ("people", {"unread": "'"}, 400, "unread must be"),
        ("people", {"words": "w" * 2_000}, 400, "at most 1,000 characters"),
        ("search", {"words": "  "}, 400, "Type a word"),
        ("search", {"words": '""'}, 200, None),
        ("search", {"words": "x", "since": "?"}, 400, "since must be a date"),
    ],
)
def test_what_makes_no_sense_is_explained(visitor, name, parameters, status, said):
    answer = visitor.ask(name, **parameters)
    assert answer["status"] == status
    if said:
        assert said in answer["error"]
        assert "Traceback" not in answer["error"]


ALLOWED = {
    "a", "b", "bdi", "button", "caption", "details", "div", "h2", "li", "mark", "p", "span",
    "summary", "table", "tbody", "td", "th", "time", "tr",
}  # fmt: skip


def test_hostile_text_is_shown_as_text(visitor):
    pieces = [
        visitor.ask("people", count=100)["html"],
        visitor.ask("search", words="hostile")["html"],
    ]
    for at in range(len(HOSTILE)):
        for words in ("", "hostile script"):
            window = visitor.ask("window", user=100 + at, words=words)
            pieces += [window["html"], window["heading"]]
    markup = "".join(pieces)
    assert set(re.findall(r"</?([a-zA-Z]\w*)", markup)) <= ALLOWED
    attributes = set(re.findall(r'[ "]([\w-]+)="', re.sub(r'(?<==)"[^"]*"', '""', markup)))
    assert not {each for each in attributes if each.startswith("on") or each in ("style", "src")}
    addresses = re.findall(r'href="([^"]*)"', markup)
    assert {html.unescape(each).split(":")[0].lower() for each in addresses if each[0] != "#"} <= {
        "http",
        "https",
    }
    assert "\x1b" not in markup
    assert visible(markup).count(HOSTILE[0]) >= 3


def test_an_empty_mirror_has_a_page(tmp_path):
    publish(tmp_path / "m", [], [])
    with BrowseServer(tmp_path / "m") as running:
        visitor = Visitor(running).enter()
        assert visitor.ask("people")["total"] == 0
        assert visitor.ask("state")["proof"] == "every list proved complete (linked or better)"
        assert visitor.ask("search", words="x")["count"] == 0
        assert visitor.ask("operators")["operators"] == []


def test_a_user_without_messages_has_a_conversation(visitor):
    window = visitor.ask("window", user=2)
    assert (window["html"], window["total"], window["first"]) == ("", 0, None)
    assert "Nobody Spoke" in window["heading"]


# --- While the mirror changes ---------------------------------------------------------------------


def test_a_new_snapshot_is_shown(own):
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        before = visitor.ask("state")["snapshot"]
        assert visitor.ask("window", user=1)["total"] == 3
        publish(own, [*USERS[:2], {"id": 5, "name": "New"}], [*MESSAGES[:3], message(1, 9, "new")])
        assert visitor.ask("state")["snapshot"] > before
        assert visitor.ask("window", user=1)["total"] == 4
        assert visitor.ask("search", words="new")["count"] == 1
        wait_for(lambda: visitor.ask("people", words="new")["total"] == 1)
        assert "Synced" in visitor.ask("state")["age"]


def test_files_that_are_removed_at_once_are_no_error(own):
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        assert visitor.ask("window", user=1)["total"] == 3
        Mirror(own).forget(1)
        assert visitor.ask("search", words="invoice")["count"] == 0
        assert visitor.ask("window", user=1)["status"] == 404
        assert visitor.ask("window", user=2)["total"] == 0
        wait_for(lambda: visitor.ask("people")["total"] == 1)


def test_a_mirror_that_vanishes_is_explained_and_comes_back(own):
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        hidden = own.with_name("hidden")
        own.rename(hidden)
        answer = visitor.ask("state")
        assert answer["status"] == 404
        assert "nothing is published" in answer["error"]
        hidden.rename(own)
        assert visitor.ask("state")["status"] == 200


def test_nothing_is_written(own):
    def contents() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in own.rglob("*")
        }

    before = contents()
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        wait_for(lambda: visitor.ask("state")["counted"])
        visitor.ask("people")
        visitor.ask("search", words="invoice")
        visitor.ask("window", user=1)
    assert contents() == before


def test_a_mirror_that_may_only_be_read_is_shown(own):
    for path in (own, *own.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        with BrowseServer(own) as running:
            assert Visitor(running).enter().ask("window", user=1)["total"] == 3
    finally:
        for path in (own, *own.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | stat.S_IWUSR)


# --- Slow, many and broken connections ------------------------------------------------------------


def test_connections_that_say_nothing_keep_nobody_out(running, visitor):
    silent = [
        socket.create_connection(("127.0.0.1", running.server_port))
        for _ in range(3 * server.MOST_CONNECTIONS)
    ]
    try:
        for each in silent[::2]:
            each.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert visitor.ask("people", words="lovelace")["total"] == 1
    finally:
        for each in silent:
            each.close()


def test_a_connection_that_says_nothing_is_closed(own, monkeypatch):
    monkeypatch.setattr(server, "SECONDS_TO_ASK", 0.1)
    with (
        BrowseServer(own) as running,
        socket.create_connection(("127.0.0.1", running.server_port), PATIENCE) as slow,
    ):
        slow.sendall(b"GET / HT")
        assert slow.recv(1) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500 + b"\r\n", b"GET /" + b"a" * 70_000,
        b"GET http://evil.example.com/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\xff" * 5_000,
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


def test_a_reader_who_leaves_in_the_middle_harms_nothing(running, visitor, capfd):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", running.server_port)) as raw:
            raw.sendall(
                f"GET {visitor.path}api/people HTTP/1.1\r\nHost: {visitor.host}\r\n"
                f"Cookie: {visitor.cookie}\r\n\r\n".encode()
            )
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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_the_command_prints_the_address_and_ends_quietly(own, number):
    before = {str(path) for path in own.rglob("*")}
    with begin(own, "--no-open") as process:
        port, target = address_of(process)
        assert entered(port, target) == 303
        process.send_signal(number)
        out, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert error == "Ctrl-C ends it\n"
    assert {str(path) for path in own.rglob("*")} == before


@posix_only
def test_a_kill_leaves_nothing_behind(own):
    before = {str(path) for path in own.rglob("*")}
    with begin(own, "--no-open") as process:
        port, target = address_of(process)
        process.kill()
        process.communicate(timeout=PATIENCE)
    assert {str(path) for path in own.rglob("*")} == before
    with begin(own, "--no-open", "--port", port) as process:
        again, other = address_of(process)
        assert again == port
        assert other != target
        assert entered(port, other) == 303
        assert entered(port, target) == 403
        process.terminate()
        process.communicate(timeout=PATIENCE)


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


def run(*arguments: object) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, "browse", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.returncode, done.stderr


def test_a_port_in_use_is_one_sentence(own):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = run(own, "--no-open", "--port", port)
    assert code == 2
    assert f"port {port} is in use; choose another with --port" in said


def test_a_folder_that_is_no_mirror_is_one_sentence(tmp_path):
    code, said = run(tmp_path, "--no-open")
    assert code == 7
    assert "nothing is published in" in said
    code, said = run(tmp_path / "nothing", "--no-open")
    assert code == 7
    assert "does not exist" in said


def test_a_mirror_of_a_newer_backread_is_one_sentence(own):
    path = own / "published" / "current" / "snapshot.json"
    path.write_text(path.read_text().replace('"format": 3', '"format": 99'))
    code, said = run(own, "--no-open")
    assert code == 7
    assert "newer backread" in said


def test_a_failed_start_leaves_no_thread(tmp_path):
    before = set(threading.enumerate())
    with pytest.raises(MirrorError, match="nothing is published"):
        BrowseServer(tmp_path)
    assert set(threading.enumerate()) <= before


@posix_only
def test_the_command_ends_quietly_while_it_counts_and_answers(own):
    with begin(own, "--no-open") as process:
        port, target = address_of(process)
        # A browser keeps connections ready that ask for nothing.
        with (
            socket.create_connection(("127.0.0.1", port)),
            socket.create_connection(("127.0.0.1", port)),
        ):
            assert entered(port, target) == 303
            process.terminate()
            _, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, error) == (0, "Ctrl-C ends it\n")
