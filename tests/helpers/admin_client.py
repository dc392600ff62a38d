"""The mock's admin interface, asked by hand."""

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import MockServer, World
from helpers.raw_requests import Answer


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
