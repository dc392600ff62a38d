"""Names of Airflow's that Airflow 3.1 has elsewhere than those after it."""

from __future__ import annotations

try:
    from airflow.sdk.configuration import conf  # type: ignore[import-not-found, unused-ignore]
    from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowRescheduleException,
    )
except ImportError:
    # Only there: later ones warn of these.
    from airflow.configuration import conf  # type: ignore[import-not-found, no-redef, unused-ignore]
    from airflow.exceptions import (  # type: ignore[import-not-found, no-redef, unused-ignore]
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowRescheduleException,
    )

__all__ = [
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowRescheduleException",
    "conf",
]
