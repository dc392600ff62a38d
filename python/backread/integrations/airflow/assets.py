"""Assets for folders, and the events of tasks that filled them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from airflow.sdk import Asset, AssetAlias  # type: ignore[import-not-found, unused-ignore]

from backread.integrations.airflow.values import is_rendered

__all__ = ["absolute", "emit", "folder_asset", "is_template"]


def is_template(value: object) -> bool:
    """Whether a folder is known only when the task runs: it is not a str, or contains Jinja."""
    return not isinstance(value, str) or not is_rendered(value)


def absolute(name: str, folder: object) -> str:
    """The folder without a trailing slash; ValueError unless it is absolute or a URI.

    A relative path would depend on each process's working directory.
    """
    if not isinstance(folder, str) or not folder:
        raise ValueError(f"{name} must be the path or URI of a folder, not {folder!r}")
    if "://" not in folder and not PurePath(folder).is_absolute():
        raise ValueError(
            f"{name} must be an absolute path, not {folder!r}: Airflow starts its processes "
            "in different folders"
        )
    return folder.rstrip("/") or "/"


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
