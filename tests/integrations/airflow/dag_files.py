"""DAG files in Airflow's folder, runs of them in this process, and what they must have read."""

from __future__ import annotations

import runpy
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow.models.asset import AssetEvent
from airflow.utils.session import create_session

from backread import Mirror, landing
from backread.testing import World

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


FIELDS = ("body", "read_by_user", "read_by_operator", "sender_type")


def messages_of(world: World) -> list[tuple[Any, ...]]:
    """Every message of a world: user, id and some fields, in order."""
    return sorted(
        (user_id, message_id, *(world.message(user_id, message_id)[name] for name in FIELDS))
        for user_id in world.user_ids()
        for message_id in world.message_ids(user_id)
    )


def mirror_holds(folder: Path, world: World) -> bool:
    """Whether a mirror has exactly the users and messages of a world, each once."""
    mirror = Mirror(folder)
    users = mirror.sql("SELECT id, name, email FROM users ORDER BY ALL").fetchall()
    messages = mirror.sql(f"SELECT user_id, id, {', '.join(FIELDS)} FROM messages").fetchall()
    expected = sorted(
        (user_id, world.user(user_id)["name"], world.user(user_id)["email"])
        for user_id in world.user_ids()
    )
    return users == expected and sorted(messages) == messages_of(world)


def messages_landed(folder: Path) -> list[tuple[Any, ...]]:
    """Every message of the only committed run of a landing folder, in order."""
    [committed] = landing.runs(folder)
    names = ["user_id", "id", *FIELDS]
    table = landing.dataset(folder, committed).to_table(columns=names)
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))
