"""The mock asked by hand, and the fields that the interface shows."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from backread.testing import Lane
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

    def __call__(self, target: str, method: str = "GET", **headers: str | None) -> Answer:
        sent = dict(self.headers)
        for name, value in headers.items():
            sent.pop(name, None)
            if value is not None:
                sent[name] = value
        self.connection.request(method, target, headers=sent)
        return Answer(self.connection.getresponse())
