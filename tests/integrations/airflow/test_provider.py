"""Airflow finds the provider, and shows the problem of a DAG where it parses it."""

from airflow.dag_processing.dagbag import DagBag
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
from dag_files import dag_file


def test_airflow_knows_the_provider(airflow_home):
    assert "backread" in ProvidersManager().providers
    hook = ProvidersManagerTaskRuntime().hooks["backread"]
    assert hook is not None
    assert (hook.hook_name, hook.connection_testable) == ("backread", True)


def test_an_invalid_argument_is_an_import_error_of_the_dag(airflow_home):
    sync = 'BackreadSyncOperator(task_id="chats", mirror="chats/")'
    with dag_file(airflow_home, "invalid", sync) as path:
        errors = DagBag(path).import_errors
    [error] = errors.values()
    assert "ValueError: mirror must be an absolute path, not 'chats/'" in error


def test_an_unknown_argument_is_an_import_error_of_the_dag(airflow_home):
    plan = 'BackreadPlanOperator(task_id="plan", folder="/srv/landed", longest_wait=60)'
    with dag_file(airflow_home, "unknown", plan) as path:
        errors = DagBag(path).import_errors
    [error] = errors.values()
    assert "longest_wait" in error
