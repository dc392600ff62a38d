"""``Client(headers=)``: sent with each request, and their values are nowhere else."""

import io
import json
import logging
import pickle
import traceback

import pytest

from backread import Client, ConfigurationError, StatusError
from helpers.api_rows import user
from helpers.scripted_server import ScriptedServer, answer

KEY = "key-of-the-gateway"


def test_client_sends_its_headers_with_each_request():
    with ScriptedServer(answer(200, user(1)), answer(200, user(2))) as server:
        with server.client(headers={"X-Gateway-Key": KEY, "Cookie": "a=1; b=2"}) as client:
            client.users.get(1)
            client.with_options(timeout=5).users.get(2)
        for request in server.requests:
            assert (request.headers["x-gateway-key"], request.headers["cookie"]) == (
                KEY,
                "a=1; b=2",
            )
            assert request.headers["authorization"] == f"Bearer {server.secret}"


def test_client_hides_the_values_of_its_headers(caplog):
    caplog.set_level(logging.DEBUG)
    echoed = answer(400, {"message": f"bad {KEY}"}, {"x-echo": KEY})
    with ScriptedServer(echoed) as server:
        client = server.client(headers={"X-Gateway-Key": KEY})
        with pytest.raises(StatusError) as caught:
            client.users.get(1)
        said = io.StringIO()
        traceback.print_exception(caught.value, file=said)
        texts = [repr(client), said.getvalue(), caplog.text, str(vars(caught.value))]
        texts += [str(pickle.dumps(each)) for each in (client, caught.value)]
        assert not [text for text in texts if KEY in text]


def test_client_reads_headers_from_the_environment_for_its_own_service_only(monkeypatch):
    with ScriptedServer(answer(200, user(1)), answer(200, user(1)), answer(200, user(1))) as server:
        monkeypatch.setenv("BACKREAD_BASE_URL", f"{server.url}/")
        monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
        monkeypatch.setenv("BACKREAD_VENDOR", server.vendor)
        monkeypatch.setenv("BACKREAD_HEADERS", json.dumps({"X-Gateway-Key": KEY}))
        client = pickle.loads(pickle.dumps(server.client(headers={"X-Gateway-Key": "another"})))
        client.users.get(1)
        Client().users.get(1)
        monkeypatch.setenv("BACKREAD_BASE_URL", "https://chat.example.com")
        server.client().users.get(1)
        assert [each.headers.get("x-gateway-key") for each in server.requests] == [KEY, KEY, None]
        monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
        monkeypatch.setenv("BACKREAD_HEADERS", json.dumps({"Authorization": KEY}))
        with pytest.raises(ConfigurationError, match=r"^BACKREAD_HEADERS: authorization is not"):
            Client()
        monkeypatch.setenv("BACKREAD_HEADERS", KEY)
        with pytest.raises(ConfigurationError, match="JSON object of texts") as caught:
            Client()
        assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, KEY) for name in ("Authorization", "accept", "HOST", "User-Agent", "TE")),
        *((name, KEY) for name in ("Content-Length", "Transfer-Encoding", "Connection")),
        *((name, KEY) for name in ("", "X Key", "X-Key:", "x-ключ")),
        *(("X-Key", value) for value in ("", f"{KEY}\r\nHost: a", f"{KEY}\0", f" {KEY}", "ключ")),
    ],
)
def test_client_refuses_headers_that_are_not_the_callers(name, value):
    with pytest.raises(ConfigurationError, match=r"^headers: ") as caught:
        Client("https://chat.example.com", "s3cret-s3cret", "example", headers={name: value})
    assert KEY not in str(caught.value)
