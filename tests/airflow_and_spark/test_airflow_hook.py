"""`BackreadHook`: connections are data, and cannot send the environment's secret elsewhere."""

from collections.abc import Iterator

import pytest

from backread import PermissionDeniedError, ServerError
from backread.testing import Lane
from helpers import fake_airflow
from helpers.fake_airflow import AirflowFailException, connect, connect_to
from helpers.scripted_server import ScriptedServer, answer

airflow = fake_airflow.airflow
no_connections = fake_airflow.no_connections


@pytest.fixture
def elsewhere() -> Iterator[ScriptedServer]:
    """Another server on this machine."""
    with ScriptedServer(lambda request: answer(403)) as listening:
        yield listening


@pytest.fixture
def environment(backread_mock: Lane, monkeypatch: pytest.MonkeyPatch) -> Lane:
    """The worker's own service."""
    monkeypatch.setenv("BACKREAD_BASE_URL", backread_mock.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", backread_mock.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", backread_mock.vendor)
    return backread_mock


def test_without_a_host_the_environment_is_used_and_code_may_set_a_proxy(
    airflow, environment, elsewhere
):
    connect_to(extra={"timeout": 5, "allow_http": False, "proxy": ""})
    with airflow.BackreadHook().get_conn() as client:
        assert client.users.page(limit=1).total == 200
    assert fake_airflow.masked == [environment.secret]
    hook = airflow.BackreadHook(proxy=elsewhere.url, max_retries=0, outage_patience=0)
    with hook.get_conn() as client, pytest.raises(PermissionDeniedError):
        client.users.page(limit=1)
    assert len(elsewhere.requests) == 1


def test_a_missing_connection_says_what_to_create(airflow):
    with pytest.raises(AirflowFailException, match="no connection 'nowhere'; create one of type"):
        airflow.BackreadHook("nowhere").get_conn()


def test_options_in_code_override_the_connection(airflow, backread_mock):
    connect(backread_mock, max_retries=5)
    backread_mock.fault("users: status(503)")
    hook = airflow.BackreadHook(max_retries=0)
    with hook.get_conn() as client, pytest.raises(ServerError):
        client.users.page(limit=1)
    assert backread_mock.calls().count == 1
    with pytest.raises(TypeError, match="no option timout; did you mean timeout"):
        airflow.BackreadHook(timout=5).get_conn()


def test_test_connection_counts_the_users_or_names_the_field(airflow, backread_mock):
    connect(backread_mock)
    works = (True, f"{backread_mock.url} answers; number of users: 200")
    assert airflow.BackreadHook().test_connection() == works
    connect(backread_mock, rate_limt=3)
    works, message = airflow.BackreadHook().test_connection()
    assert (works, "unknown fields in its extra: rate_limt" in message) == (False, True)
    connect(backread_mock, timeout=-1)
    works, message = airflow.BackreadHook().test_connection()
    assert not works
    assert message.startswith("the connection 'backread_default': timeout")
    connect(backread_mock)
    backread_mock.fault("users: status(401)")
    works, message = airflow.BackreadHook().test_connection()
    assert not works
    assert "401: it rejected the secret" in message
    assert backread_mock.secret not in message
