"""What a client is told: taken from arguments and the environment, refused where it makes no sense.

Which addresses, vendors and secrets are refused is tested in src/core/config.

Nothing here sends a request but where a test says so.
"""

import copy
import inspect
import io
import json
import logging
import pickle
import re
import subprocess
import sys
import traceback
from datetime import timedelta
from typing import Any

import pytest

from backread import AsyncClient, Client, ConfigurationError, ServerError, StatusError
from backread.testing import Dialect, Fault, MockServer, World
from helpers.api_rows import user
from helpers.command_line import settings_of
from helpers.doc_pages import IN_CHECKOUT, ROOT
from helpers.scripted_server import ScriptedServer, answer

URL, SECRET, VENDOR = "https://chat.example.com", "5ecretOfTheService", "acme"


pytestmark = pytest.mark.usefixtures("no_settings")


def refused(*words: str, **changes: Any) -> str:
    """The message of the ConfigurationError, which holds these words and no secret."""
    arguments = {"base_url": URL, "api_secret": SECRET, "vendor": VENDOR, **changes}
    with pytest.raises(ConfigurationError) as caught:
        Client(**arguments)
    assert isinstance(caught.value, ValueError)
    assert caught.value.attempts == ()
    message = str(caught.value)
    for word in words:
        assert word in message
    assert SECRET not in message
    assert "\n" not in message
    return message


def test_what_is_not_given_comes_from_the_environment(scripted, monkeypatch):
    server = scripted(answer(200, user(42)))
    monkeypatch.setenv("BACKREAD_BASE_URL", f"{server.url}/api/")
    monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    monkeypatch.setenv("BACKREAD_VENDOR", "environment")
    with Client() as client:
        assert (client.base_url, client.vendor) == (f"{server.url}/api", "environment")
        client.users.get(42)
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert server.requests[0].headers["accept"] == "application/vnd.environment.v1+json"
    given = Client(URL, vendor=VENDOR)
    assert (given.base_url, given.vendor) == (URL, VENDOR)


def test_a_password_in_an_address_is_not_shown():
    assert "hunter2" not in refused("api_secret", base_url="https://ada:hunter2@chat.example.com")
    # The secret in the place of the vendor.
    assert "c2Vj" not in refused("vendor", vendor="c2VjcmV0K2tleS9iYXNlNjQ=")


@pytest.mark.parametrize("name", ["timeout", "deadline"])
def test_durations_are_seconds_timedeltas_or_none(name):
    client = Client(URL, SECRET, VENDOR)
    for length in (None, 5, 0.25, timedelta(milliseconds=250), timedelta(days=400)):
        client.with_options(**{name: length})
    for length in (0, -0.5, float("nan"), float("inf"), 1e300, timedelta(0)):
        refused(name, **{name: length})
        with pytest.raises(ConfigurationError, match=name):
            client.with_options(**{name: length})
    for other in ("30", True, [30]):
        with pytest.raises(TypeError, match=name):
            Client(URL, SECRET, VENDOR, **{name: other})


@pytest.mark.parametrize("name", ["max_retries", "max_response_bytes", "on_rate_limit"])
def test_client_refuses_none_for_options_without_that_meaning(name):
    with pytest.raises(TypeError, match=f"{name} must be .*, not NoneType"):
        Client(URL, SECRET, VENDOR, **{name: None})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_url", "chat.example.com"),
        ("max_retries", -1),
        ("max_retries", 2**70),
        ("max_concurrency", 0),
        ("max_response_bytes", 0),
        ("rate_limit", 0),
        ("rate_limit", float("nan")),
        ("on_rate_limit", "explode"),
        ("outage_patience", -1),
        ("outage_patience", None),
        ("proxy", "not a url"),
        ("user_agent", ""),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(name, value):
    refused(name, **{name: value})


def test_a_ca_bundle_must_be_a_file_of_certificates(tmp_path):
    missing = tmp_path / "missing.pem"
    assert str(missing) in refused("ca_bundle", "PEM", ca_bundle=missing)
    refused("ca_bundle", ca_bundle=str(tmp_path))
    for name, content in {"empty": b"", "text": b"no certificate", "binary": b"\xff\x00"}.items():
        (tmp_path / name).write_bytes(content)
        assert name in refused("ca_bundle", ca_bundle=tmp_path / name)


def test_environment_proxy_is_used_except_for_loopback(scripted, monkeypatch):
    proxy, server = scripted(answer(200, user(42))), scripted(answer(200, user(43)))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Client("http://chat.example.com", SECRET, VENDOR, allow_http=True) as client:
        assert client.users.get(42).id == 42
    assert proxy.requests[0].target == "http://chat.example.com/external/users/42"
    with Client(server.url, SECRET, VENDOR) as client:
        assert client.users.get(43).id == 43
    assert len(proxy.requests) == 1


def test_with_options_changes_a_copy(each_face, scripted):
    server = scripted(answer(503), answer(503), answer(200, user(42)))
    client = each_face.client(server, max_retries=1)
    changed = client.with_options(max_retries=0, timeout=timedelta(seconds=5))
    assert type(changed) is each_face.kind
    assert repr(changed) == repr(client)
    with pytest.raises(ServerError):
        each_face.call(changed.users.get, 42)
    assert len(server.requests) == 1
    assert each_face.call(client.users.get, 42).id == 42


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_only_the_service_is_given_by_position(kind):
    parameters = inspect.signature(kind).parameters.items()
    positional = [
        name for name, one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    assert positional == ["base_url", "api_secret", "vendor"]


@pytest.mark.skipif(not IN_CHECKOUT, reason="the tool and the pages are in the checkout only")
def test_signature_docstring_and_pages_are_written_from_the_options():
    command = [sys.executable, ROOT / "tools" / "options_table.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Tenant(Client):
    def __init__(self, tenant: str, **options: Any) -> None:
        super().__init__(**options)
        self.tenant = tenant


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda client: client.with_options(timeout=3),
        copy.copy,
        copy.deepcopy,
        lambda client: pickle.loads(pickle.dumps(client)),
    ],
    ids=["with_options", "copy", "deepcopy", "pickle"],
)
def test_a_copy_has_the_attributes_of_the_subclass(backread_server, monkeypatch, duplicate):
    for name, value in settings_of(backread_server).items():
        monkeypatch.setenv(name, value)
    with Tenant("ada", max_retries=2) as client, duplicate(client) as other:
        assert type(other) is Tenant
        assert other.tenant == "ada"
        assert other.users.get(42).id == 42


HERE = {"base_url": "http://127.0.0.1:1", "api_secret": "mock_s3cret", "vendor": "example"}


@pytest.mark.parametrize(
    ("call", "options", "problem"),
    [
        (Client, {"max_retry": 3}, "Client() has no option max_retry; did you mean max_retries?"),
        (Client, {"verify": False}, "Client() has no option verify; it has allow_http,"),
        (World, {"size": 3}, "World() has no option size; it has messages_per_user,"),
        (AsyncClient, {"time_out": 3}, "AsyncClient() has no option time_out; did you mean timeo"),
        (MockServer, {"fault": ""}, "MockServer() has no option fault; did you mean faults?"),
        (Dialect.hostile, {"null": "both"}, "Dialect() has no option null; did you mean nulls?"),
        (Fault.drip, {"byte": 3}, "Fault.drip() has no option byte; did you mean bytes?"),
    ],
)
def test_client_names_an_unknown_option(call, options, problem):
    with pytest.raises(TypeError, match=f"^{re.escape(problem)}"):
        call(**options)


def test_with_options_tells_what_is_unknown_from_what_cannot_change():
    with Client(**HERE) as client:
        with pytest.raises(TypeError, match="no option max_retry; did you mean max_retries"):
            client.with_options(max_retry=3)  # type: ignore[call-arg]
        for name in ("base_url", "api_secret", "proxy", "allow_http"):
            with pytest.raises(TypeError, match=rf"cannot change {name}: .* make a new Client"):
                client.with_options(**{name: ""})


def test_limit_of_a_list_names_max_items():
    said = "has no option limit; max_items ends the walk after that many rows; page_size is"
    with Client(**HERE) as client:
        for method, name in (
            (client.messages.all, "Messages.all"),
            (AsyncClient(**HERE).users.list, "AsyncUsers.list"),
        ):
            with pytest.raises(TypeError, match=rf"^{name}\(\) {said}"):
                method(limit=10)
        with pytest.raises(TypeError, match="no option max_item; did you mean max_items"):
            client.users.list(max_item=10)  # type: ignore[call-overload]


KEY = "key-of-the-gateway"


def test_client_sends_its_headers_with_each_request():
    with ScriptedServer(answer(200, user(1)), answer(200, user(2))) as server:
        with server.client(headers={"X-Gateway-Key": KEY, "Cookie": "a=1; b=2"}) as client:
            client.users.get(1)
            client.with_options(timeout=5).users.get(2)
        for request in server.requests:
            assert request.headers["x-gateway-key"] == KEY
            assert request.headers["cookie"] == "a=1; b=2"
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
        *((name, KEY) for name in ("Authorization", "accept", "HOST", "Content-Length", "X Key")),
        *(("X-Key", value) for value in ("", f"{KEY}\r\nHost: a", "ключ")),
    ],
)
def test_client_refuses_headers_that_are_not_the_callers(name, value):
    with pytest.raises(ConfigurationError, match=r"^headers: ") as caught:
        Client("https://chat.example.com", "s3cret-s3cret", "example", headers={name: value})
    assert KEY not in str(caught.value)
