"""Names of Airflow's that Airflow 3.1 has elsewhere than those after it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "IS_31",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowRescheduleException",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "conf",
]

try:
    conf: Any = import_module("airflow.sdk.configuration").conf
    _exceptions: Any = import_module("airflow.sdk.exceptions")
    IS_31 = False
except ModuleNotFoundError:
    # Only there: later ones warn of these.
    conf = import_module("airflow.configuration").conf
    _exceptions = import_module("airflow.exceptions")
    IS_31 = True

AirflowException: Any = _exceptions.AirflowException
AirflowFailException: Any = _exceptions.AirflowFailException
AirflowNotFoundException: Any = _exceptions.AirflowNotFoundException
AirflowRescheduleException: Any = _exceptions.AirflowRescheduleException
AirflowSensorTimeout: Any = _exceptions.AirflowSensorTimeout
AirflowSkipException: Any = _exceptions.AirflowSkipException
