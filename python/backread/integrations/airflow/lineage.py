"""OpenLineage: the service that a task read and the tables that it wrote.

Only Airflow's provider for OpenLineage calls this, so it is imported only here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

__all__ = ["facets"]


def facets(base_url: str | None, folder: str, rows: Mapping[str, int]) -> Any:
    """The lineage of a task that filled these tables of a folder, with their row counts."""
    # Both are installed with the provider that calls this.
    lineage = import_module("airflow.providers.openlineage.extractors").OperatorLineage
    facet = import_module("airflow.providers.common.compat.openlineage.facet")
    inputs = []
    if base_url is not None:
        service = urlsplit(base_url)
        namespace = f"{service.scheme}://{service.netloc}"
        inputs.append(facet.InputDataset(namespace=namespace, name=service.path or "/"))
    namespace, place = _place(folder)
    outputs = [
        facet.OutputDataset(
            namespace=namespace,
            name=f"{place}/{table}",
            outputFacets={
                "outputStatistics": facet.OutputStatisticsOutputDatasetFacet(rowCount=count)
            },
        )
        for table, count in rows.items()
    ]
    return lineage(inputs=inputs, outputs=outputs)


def _place(folder: str) -> tuple[str, str]:
    """A folder's namespace and name: ``("file", "/srv/chats")``, ``("s3://bucket", "chats")``."""
    if "://" not in folder:
        return "file", PurePath(folder).as_posix()
    parts = urlsplit(folder)
    return f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
