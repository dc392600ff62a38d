"""What a client is told: taken from arguments and the environment, refused where it makes no sense.

Which addresses, vendors and secrets are refused is tested in src/core/config.

Nothing here sends a request but where a test says so.
"""

import copy
import inspect
import pickle
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from backread import AsyncClient, Client, ConfigurationError, ServerError
from helpers.api_rows import user
from helpers.doc_pages import IN_CHECKOUT, ROOT
from helpers.scripted_server import answer

URL, SECRET, VENDOR = "https://chat.example.com", "5ecretOfTheService", "acme"

both = pytest.mark.parametrize("kind", [Client, AsyncClient])


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


def test_what_is_not_given_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", "https://environment.example.com/api/")
    monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    monkeypatch.setenv("BACKREAD_VENDOR", "environment")
    client = Client()
    assert client.base_url == "https://environment.example.com/api"
    assert client.vendor == "environment"
    given = Client(URL, vendor=VENDOR)
    assert (given.base_url, given.vendor) == (URL, VENDOR)


def test_the_secret_of_the_environment_is_sent(face, scripted, monkeypatch):
    server = scripted(answer(200, user(42)))
    monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    client = face.kind(server.url, vendor="acme")
    face.call(client.users.get, 42)
    face.close(client)
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert server.requests[0].headers["accept"] == "application/vnd.acme.v1+json"


@pytest.mark.parametrize(
    ("named", "argument"), [("api_secret", "base_url"), ("proxy", "proxy")], ids=["url", "proxy"]
)
def test_a_password_in_an_address_is_not_shown(named, argument):
    scheme = "https" if argument == "base_url" else "ftp"
    address = f"{scheme}://ada:hunter2@chat.example.com"
    assert "hunter2" not in refused(named, **{argument: address})


@pytest.mark.parametrize("name", ["timeout", "deadline"])
@pytest.mark.parametrize(
    "length",
    [0, -1, 0.0, -0.5, float("nan"), float("inf"), 1e300, timedelta(0), timedelta(seconds=-1)],
    ids=repr,
)
def test_a_duration_that_makes_no_sense_is_refused(name, length):
    refused(name, **{name: length})
    with pytest.raises(ConfigurationError, match=name):
        Client(URL, SECRET, VENDOR).with_options(**{name: length})


@pytest.mark.parametrize("name", ["timeout", "deadline"])
@pytest.mark.parametrize("length", ["30", b"30", True, [30]], ids=repr)
def test_a_duration_of_another_type_is_a_type_error(name, length):
    with pytest.raises(TypeError, match=name):
        Client(URL, SECRET, VENDOR, **{name: length})


@pytest.mark.parametrize(
    "name", ["max_retries", "max_concurrency", "max_response_bytes", "on_rate_limit", "allow_http"]
)
def test_client_refuses_none_for_options_without_that_meaning(name):
    with pytest.raises(TypeError, match=f"{name} must be .*, not NoneType"):
        Client(URL, SECRET, VENDOR, **{name: None})


@pytest.mark.parametrize(
    "length", [None, 5, 0.25, timedelta(milliseconds=250), timedelta(days=400)], ids=repr
)
def test_durations_are_seconds_timedeltas_or_none(length):
    Client(URL, SECRET, VENDOR, timeout=length, deadline=length)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_url", "chat.example.com"),
        ("base_url", "http://chat.example.com"),
        ("vendor", "a/b"),
        ("api_secret", "mock_secret_of_port_1"),
        ("max_retries", -1),
        ("max_retries", 2**70),
        ("max_concurrency", 0),
        ("max_concurrency", -1),
        ("max_response_bytes", 0),
        ("max_response_bytes", -1),
        ("rate_limit", 0),
        ("rate_limit", -1.0),
        ("rate_limit", float("nan")),
        ("rate_limit", float("inf")),
        ("on_rate_limit", "explode"),
        ("outage_patience", -1),
        ("outage_patience", None),
        ("outage_patience", float("nan")),
        ("proxy", "not a url"),
        ("proxy", "ftp://proxy.example.com"),
        ("proxy", "socks5://proxy.example.com:1080"),
        ("api_secret", SECRET + " two"),
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


def test_proxy_option_sends_requests_to_the_proxy(face, scripted):
    proxy = scripted(answer(200, user(42)))
    client = face.kind("http://127.0.0.1:9", SECRET, VENDOR, proxy=proxy.url)
    assert face.call(client.users.get, 42).id == 42
    face.close(client)
    assert proxy.requests[0].target == "http://127.0.0.1:9/external/users/42"


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


@pytest.mark.parametrize("name", ["base_url", "api_secret", "proxy", "allow_http", "no_such"])
def test_with_options_refuses_what_belongs_to_the_connections(name):
    with pytest.raises(TypeError, match=name):
        Client(URL, SECRET, VENDOR).with_options(**{name: None})


@both
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


class Tenant:
    def __init__(self, tenant: str, **options: Any) -> None:
        super().__init__(**options)
        self.tenant = tenant
        self.tags = ["new"]


class SyncTenant(Tenant, Client):
    pass


class AsyncTenant(Tenant, AsyncClient):
    pass


@pytest.fixture
def client(each_face, backread_server, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", backread_server.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", backread_server.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", backread_server.vendor)
    client = {Client: SyncTenant, AsyncClient: AsyncTenant}[each_face.kind]("ada", max_retries=2)
    yield client
    each_face.close(client)


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
def test_a_copy_has_the_attributes_of_the_subclass(each_face, client, duplicate):
    other = duplicate(client)
    assert type(other) is type(client)
    assert (other.tenant, other.tags) == ("ada", ["new"])
    assert each_face.call(other.users.get, 42).id == 42
    each_face.close(other)


def test_only_a_deep_copy_has_its_own_lists(client):
    client.itself = client
    deep, shallow = copy.deepcopy(client), copy.copy(client)
    assert deep.itself is deep
    deep.tags.append("deep")
    shallow.tags.append("shallow")
    assert client.tags == ["new", "shallow"]


def test_a_subclass_chooses_what_it_pickles(each_face, client, monkeypatch):
    monkeypatch.setattr(Tenant, "__getstate__", lambda self: {"tenant": self.tenant}, raising=False)
    other = pickle.loads(pickle.dumps(client))
    assert vars(other) == {"tenant": "ada"}
    each_face.close(other)
