"""The link from a task to its mirror's report, in Airflow's UI."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink  # type: ignore[import-not-found, unused-ignore]

__all__ = ["MirrorReportLink"]


class MirrorReportLink(BaseOperatorLink):  # type: ignore[misc, unused-ignore]
    """A button *Report* that leads to the operator's ``report_url``."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The URL as the task rendered it."""
        return str(operator.report_url)
