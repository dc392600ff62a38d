"""Airflow connections: client arguments, the form, and errors that name a field."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from backread import BackreadError, PermissionDeniedError, ServerError
from backread.errors import ConfigurationError
from backread.integrations.airflow.connection import FIELDS, permanent, read_settings
from backread.integrations.airflow.provider_info import get_provider_info
from helpers import fake_airflow
from helpers.fake_airflow import AirflowFailException, connect, connect_to
from helpers.scripted_server import answer

SECRET = "told-to-nobody"
URL = "https://chat.example.com/api"
ENVIRONMENT = {
    "BACKREAD_BASE_URL": URL,
    "BACKREAD_API_SECRET": SECRET,
    "BACKREAD_VENDOR": "acme",
}


def connection(**fields: Any) -> SimpleNamespace:
    """A complete connection, except for fields given as None."""
    whole = {"conn_id": "chats", "host": URL, "password": SECRET, "extra": {"vendor": "acme"}}
    return fake_airflow.connection(**{**whole, **fields})


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({}, URL),
        ({"host": "chat.example.com", "schema": "api"}, URL),
        ({"host": "http://127.0.0.1", "port": 8000}, "http://127.0.0.1:8000"),
        ({"host": URL, "port": 8443}, "https://chat.example.com:8443/api"),
        ({"host": "https://chat.example.com:1", "port": 8443}, "https://chat.example.com:1"),
        ({"host": f" {URL}/ "}, f"{URL}/"),
    ],
)
def test_the_base_url_is_host_port_and_schema(fields, url):
    assert read_settings(connection(**fields), {}).base_url == url


def test_fields_may_be_text_as_in_a_uri():
    extra = {
        "vendor": "acme",
        "timeout": "5.5",
        "max_retries": "2",
        "rate_limit": 10,
        "allow_http": "True",
        "ca_bundle": "",
        "deadline": None,
    }
    settings = read_settings(connection(extra=extra), {})
    assert settings.vendor == "acme"
    assert settings.options == {
        "timeout": 5.5,
        "max_retries": 2,
        "rate_limit": 10.0,
        "allow_http": True,
    }


def test_missing_fields_come_from_the_environment():
    settings = read_settings(connection(host=None, password=None, extra=None), ENVIRONMENT)
    assert (settings.base_url, settings.api_secret, settings.vendor) == (None, None, None)
    assert settings.masked == (SECRET,)


@pytest.mark.parametrize(("host", "password"), [(None, None), ("  ", SECRET)])
@pytest.mark.parametrize(
    ("extra", "named"),
    [
        ({"proxy": "http://127.0.0.1:9"}, "proxy"),
        ({"ca_bundle": "/etc/ssl/ca.pem"}, "ca_bundle"),
        ({"proxy": "http://127.0.0.1:9", "allow_http": True}, "proxy or allow_http"),
    ],
)
def test_a_connection_without_a_host_cannot_redirect_the_secret(host, password, extra, named):
    said = f"'chats' has no host, so it may not set {named}; give it a host and a password"
    given = connection(host=host, password=password, extra={"vendor": "acme", **extra}, port=443)
    with pytest.raises(ConfigurationError, match=said) as caught:
        read_settings(given, ENVIRONMENT)
    assert SECRET not in str(caught.value)
    # With a host and a password, the connection's own secret is sent.
    own = connection(extra={"vendor": "acme", **extra})
    assert set(named.split(" or ")) == read_settings(own, ENVIRONMENT).options.keys()


def test_the_environment_s_secret_is_not_sent_to_a_connection_s_host():
    with pytest.raises(ConfigurationError, match="'chats' has no password; give the API secret"):
        read_settings(connection(password=""), ENVIRONMENT)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"conn_type": "http"}, "has the type 'http', not 'backread'"),
        ({"host": None}, "no host"),
        ({"host": "http://[chat", "port": 1}, "host is not the address"),
        ({"password": None, "login": SECRET}, "no password; give the API secret as password"),
        ({"extra": None}, "no vendor"),
        ({"extra": "{vendor"}, "not JSON"),
        ({"extra": "[1]"}, "not a JSON object"),
        ({"extra": {"vendor": "a", "timeout": True}}, "timeout must be a number"),
        ({"extra": {"vendor": "a", "rate_limt": 3}}, "unknown fields in its extra: rate_limt"),
        ({"extra": {"vendor": "a", "timeout": "soon"}}, "timeout must be a number"),
        ({"extra": {"vendor": "a", "max_retries": 1.5}}, "max_retries must be a whole number"),
        ({"extra": {"vendor": "a", "allow_http": "perhaps"}}, "allow_http must be true"),
    ],
)
def test_an_invalid_field_is_named_without_the_secret(fields, said):
    with pytest.raises(ConfigurationError) as caught:
        read_settings(connection(**fields), {})
    assert said in str(caught.value)
    assert str(caught.value).startswith("the connection 'chats'")
    assert SECRET not in str(caught.value)


def test_the_password_of_a_proxy_is_masked_too():
    extra = {"vendor": "acme", "proxy": "http://me:p%40ss@proxy.example.com:3128"}
    settings = read_settings(connection(extra=extra), {})
    assert settings.masked == (SECRET, "p@ss")
    assert SECRET not in repr(settings)
    assert "p%40ss" not in repr(settings)


@pytest.mark.parametrize(
    ("status", "field"),
    [
        (401, "the field password (API secret)"),
        (403, "as password (API secret)"),
        (404, "the field host (Base URL)"),
        (406, "the field vendor"),
        (503, None),
    ],
)
def test_permanent_errors_name_the_connection_and_its_field(backread_mock, status, field):
    backread_mock.fault(f"users: status({status})")
    with backread_mock.client(max_retries=0) as client, pytest.raises(BackreadError) as caught:
        client.users.page()
    message = permanent(caught.value, "chats")
    if field is None:
        assert message is None
    else:
        assert message is not None
        assert message.startswith(f"the connection 'chats': GET {backread_mock.url}/external/users")
        assert f"the service answered {status}: " in message
        assert field in message
        assert backread_mock.secret not in message


def test_the_form_has_every_field():
    [kind] = get_provider_info()["connection-types"]
    assert kind["conn-fields"] == FIELDS
    assert kind["conn-fields"]["timeout"]["schema"] == {"type": ["number", "null"]}
    assert kind["conn-fields"]["proxy"]["schema"]["format"] == "password"
    assert kind["ui-field-behaviour"]["relabeling"]["password"] == "API secret"


def test_the_provider_and_the_package_import_neither_airflow_nor_duckdb():
    program = (
        "import sys, backread.integrations.airflow\n"
        "from backread.integrations.airflow import provider_info\n"
        "provider_info.get_provider_info()\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('airflow', 'duckdb')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


airflow = fake_airflow.airflow


no_connections = fake_airflow.no_connections


def test_without_a_host_the_environment_is_used_and_code_may_set_a_proxy(
    airflow, backread_mock, scripted, monkeypatch
):
    monkeypatch.setenv("BACKREAD_BASE_URL", backread_mock.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", backread_mock.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", backread_mock.vendor)
    elsewhere = scripted(lambda request: answer(403))
    connect_to(extra={"timeout": 5, "allow_http": False, "proxy": ""})
    with airflow.BackreadHook().get_conn() as client:
        assert client.users.page(limit=1).total == 200
    assert fake_airflow.masked == [backread_mock.secret]
    hook = airflow.BackreadHook(proxy=elsewhere.url, max_retries=0, outage_patience=0)
    with hook.get_conn() as client, pytest.raises(PermissionDeniedError):
        client.users.page(limit=1)
    assert len(elsewhere.requests) == 1


def test_options_in_code_override_the_connection(airflow, backread_mock):
    connect(backread_mock, max_retries=5)
    backread_mock.fault("users: status(503)")
    hook = airflow.BackreadHook(max_retries=0)
    with hook.get_conn() as client, pytest.raises(ServerError):
        client.users.page(limit=1)
    assert backread_mock.calls().count == 1
    with pytest.raises(AirflowFailException, match="no connection 'nowhere'; create one of type"):
        airflow.BackreadHook("nowhere").get_conn()
    with pytest.raises(TypeError, match="no option timout; did you mean timeout"):
        airflow.BackreadHook(timout=5).get_conn()


def test_test_connection_counts_the_users_or_names_the_field(airflow, backread_mock):
    connect(backread_mock)
    works = (True, f"{backread_mock.url} answers; number of users: 200")
    assert airflow.BackreadHook().test_connection() == works
    backread_mock.fault("users: status(401)")
    for extra, said in (
        ({"rate_limt": 3}, "unknown fields in its extra: rate_limt"),
        ({"timeout": -1}, "the connection 'backread_default': timeout"),
        ({}, "401: it rejected the secret"),
    ):
        connect(backread_mock, **extra)
        works, message = airflow.BackreadHook().test_connection()
        assert (works, said in message, backread_mock.secret in message) == (False, True, False)
