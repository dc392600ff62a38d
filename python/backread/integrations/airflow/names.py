"""Airflow names that Airflow 3.1 has in other modules than later versions."""

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
    # Only in 3.1: later versions deprecate these modules.
    conf = import_module("airflow.configuration").conf
    _exceptions = import_module("airflow.exceptions")
    IS_31 = True

AirflowException: Any = _exceptions.AirflowException
AirflowFailException: Any = _exceptions.AirflowFailException
AirflowNotFoundException: Any = _exceptions.AirflowNotFoundException
AirflowRescheduleException: Any = _exceptions.AirflowRescheduleException
AirflowSensorTimeout: Any = _exceptions.AirflowSensorTimeout
AirflowSkipException: Any = _exceptions.AirflowSkipException
