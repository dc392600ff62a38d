"""DAG files in Airflow's folder, and runs of them in this process."""

from __future__ import annotations

import runpy
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session

__all__ = ["dag_file", "extras_of", "run_dag", "states", "value_of"]

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


def value_of(run: Any, task_id: str) -> Any:
    """The XCom of a task."""
    [instance] = [each for each in run.get_task_instances() if each.task_id == task_id]
    return instance.xcom_pull(task_ids=task_id)


def extras_of(dag_id: str) -> list[tuple[str, Any]]:
    """The URI and the extra of each asset event of a DAG."""
    with create_session() as session:
        events = session.query(AssetEvent).filter_by(source_dag_id=dag_id).all()
        return [(event.asset.uri, event.extra) for event in events]
