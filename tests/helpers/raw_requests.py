"""The mock and its admin interface asked by hand, and the fields that the interface shows."""

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from backread.testing import Lane, MockServer, World
from helpers import api_rows

USER_FIELDS, MESSAGE_FIELDS = list(api_rows.user(1)), list(api_rows.message(1))


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Caller:
    """Sends requests by hand, over one connection that is kept alive."""

    def __init__(self, server: Lane) -> None:
        self.headers = {
            "Authorization": f"Bearer {server.secret}",
            "Accept": f"application/vnd.{server.vendor}.v1+json",
        }
        port = urlsplit(server.url).port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __del__(self) -> None:
        self.connection.close()

    def __call__(self, target: str, method: str = "GET", **headers: str | None) -> Answer:
        sent = dict(self.headers)
        for name, value in headers.items():
            sent.pop(name, None)
            if value is not None:
                sent[name] = value
        self.connection.request(method, target, headers=sent)
        return Answer(self.connection.getresponse())


class Admin(contextlib.AbstractContextManager["Admin"]):
    """Asks the admin interface, over one connection that is kept alive."""

    def __init__(self, server: MockServer) -> None:
        self.token = server.admin_token
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def send(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> Answer:
        headers = {"Authorization": f"Bearer {token or self.token}"}
        sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        self.connection.request(method, f"/__mock/{path}", sent, headers)
        return Answer(self.connection.getresponse())

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        answer = self.send(method, path, body)
        assert answer.status == 200, answer.body
        return answer.json

    def problem(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        answer = self.send(method, path, body)
        error = answer.json["error"]
        assert error["status"] == answer.status
        return answer.status, error["message"]

    def __exit__(self, *_: object) -> None:
        self.connection.close()


@pytest.fixture
def admin_server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=120, messages_per_user=(0, 12))) as server:
        yield server


@pytest.fixture
def admin(admin_server: MockServer) -> Iterator[Admin]:
    with Admin(admin_server) as admin:
        yield admin
