"""A page of `backread browse` over a small mirror, and who asks it by HTTP. A test module takes the
fixtures that it needs, as in ``visitor = browse_visitor.visitor``.
"""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from backread._browse import BrowseServer
from helpers.hostile_text import ADDRESSES, HOSTILE, message
from helpers.mirrors import BatchSource, batch
from helpers.waiting import PATIENCE

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
