"""DAGs as their files: Airflow runs what it finds in its folder, in one process too."""

from __future__ import annotations

import runpy
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["dag_file", "run_dag", "states"]

IMPORTS = """\
from datetime import timedelta
from airflow.sdk import DAG, Asset, AssetAlias, task
from backread.integrations.airflow import *
"""


@contextmanager
def dag_file(home: Path, name: str, body: str) -> Iterator[Path]:
    """A file in the folder of DAGs with the body in a DAG of this name, until the block ends."""
    path = home / "dags" / f"{name}.py"
    text = f"{IMPORTS}\nwith DAG({name!r}, schedule=None) as dag:\n"
    path.write_text(text + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n")
    try:
        yield path
    finally:
        path.unlink()


def run_dag(home: Path, name: str, body: str) -> Any:
    """Runs such a DAG to its end in this process, by ``DAG.test``; gives its run."""
    with dag_file(home, name, body) as path:
        dag = runpy.run_path(str(path))["dag"]
        return dag.test()


def states(run: Any) -> dict[str, str]:
    """The state of each task; of a mapped one, of each index."""
    return {
        each.task_id + (f"[{each.map_index}]" if each.map_index >= 0 else ""): str(each.state)
        for each in run.get_task_instances()
    }
