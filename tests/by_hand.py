"""The mock asked by hand, and the fields that the interface shows."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from backread.testing import Lane

USER_FIELDS = [
    "id",
    "name",
    "email",
    "reference",
    "created_at",
    "updated_at",
    "online_at",
    "last_url",
    "user_attributes",
]
MESSAGE_FIELDS = [
    "id",
    "body",
    "read_by_user",
    "read_by_operator",
    "created_at",
    "file_url",
    "auto_invitation",
    "sender_type",
    "sender",
]
SENDER_FIELDS = {
    "user": ["id", "name", "email"],
    "operator": ["id", "forename", "surname", "email", "picture_thumb_url"],
}


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

    def __call__(self, target: str, method: str = "GET", **headers: str | None) -> Answer:
        sent = dict(self.headers)
        for name, value in headers.items():
            sent.pop(name, None)
            if value is not None:
                sent[name] = value
        self.connection.request(method, target, headers=sent)
        return Answer(self.connection.getresponse())
