"""Names of Airflow's that the tests use, and that Airflow 3.1 has elsewhere than those after it."""

from __future__ import annotations

try:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk.exceptions import TaskDeferred
    from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
    from airflow.sdk.serde import serialize
except ImportError:
    from airflow.exceptions import TaskDeferred
    from airflow.models.dagbag import DagBag
    from airflow.providers_manager import ProvidersManager as ProvidersManagerTaskRuntime
    from airflow.serialization.serde import serialize

__all__ = ["DagBag", "ProvidersManagerTaskRuntime", "TaskDeferred", "serialize"]
