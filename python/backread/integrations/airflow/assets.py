"""How a folder appears in Airflow: as an asset with events, and by a link to its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from airflow.sdk import (  # type: ignore[import-not-found, unused-ignore]
    Asset,
    AssetAlias,
    BaseOperatorLink,
)

from backread.integrations.airflow.arguments import absolute

__all__ = ["MirrorReportLink", "emit", "folder_asset"]


def folder_asset(folder: str) -> Any:
    """The Asset of a mirror's or a landing's folder, for ``schedule``, ``inlets`` and ``outlets``.

    Its name and URI are that of the folder, such as ``file:///srv/chats`` or ``s3://bucket/chats``.
    ValueError for a relative path.
    """
    folder = absolute("folder", folder)
    return Asset(uri=folder if "://" in folder else PurePath(folder).as_uri())


def emit(context: Mapping[str, Any], outlets: Iterable[Any], folder: str, extra: Any) -> None:
    """Adds ``extra`` to the event of each outlet, which Airflow records if the task succeeds."""
    events = context["outlet_events"]
    for outlet in outlets:
        if isinstance(outlet, AssetAlias):
            events[outlet].add(folder_asset(folder), extra=extra)
        elif isinstance(outlet, Asset):
            events[outlet].extra = extra


class MirrorReportLink(BaseOperatorLink):  # type: ignore[misc, unused-ignore]
    """A button *Report* that leads to the operator's ``report_url``."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The URL as the task rendered it."""
        return str(operator.report_url)
