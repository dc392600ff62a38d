"""The provider's metadata, which Airflow reads in every process; does not import Airflow."""

from __future__ import annotations

from typing import Any

from backread.integrations.airflow.connection import CONNECTION_TYPE, FIELDS, STANDARD_FIELDS

__all__ = ["get_provider_info"]

PACKAGE = "backread.integrations.airflow"


def get_provider_info() -> dict[str, Any]:
    """The provider's description: the entry point of the group ``apache_airflow_provider``."""
    name = "backread"
    return {
        "package-name": "backread",
        "name": name,
        "description": "Reads every user and every message of a chat widget's service.",
        "integrations": [{"integration-name": name, "tags": ["service"]}],
        "hooks": [{"integration-name": name, "python-modules": [f"{PACKAGE}.hook"]}],
        "operators": [
            {
                "integration-name": name,
                "python-modules": [f"{PACKAGE}.sync", f"{PACKAGE}.shards"],
            }
        ],
        "extra-links": [f"{PACKAGE}.assets.MirrorReportLink"],
        "connection-types": [
            {
                "connection-type": CONNECTION_TYPE,
                "hook-class-name": f"{PACKAGE}.hook.BackreadHook",
                "hook-name": name,
                "ui-field-behaviour": STANDARD_FIELDS,
                "conn-fields": FIELDS,
            }
        ],
    }
