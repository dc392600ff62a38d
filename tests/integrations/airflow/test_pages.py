"""The DAGs of docs/how-to/airflow.md, on a real scheduler.

Each block is a folder of DAGs. Each DAG is run by its schedule, then triggered by hand, then by an
asset: the last two have no logical date. What a page's other blocks read is what the DAGs before
them left.
"""

import inspect
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from components import Airflow, running, until
from held import messages_of, mirror_holds
from page_dags import ASSET, dag_ids, started_in_each_way

from backread import Mirror, landing
from backread.integrations.airflow import BackreadSyncOperator
from backread.integrations.airflow.base_operators import ReadingOperator, ResumingOperator
from backread.integrations.airflow.new_messages_query import News
from backread.integrations.airflow.shards import CommitSummary
from backread.integrations.airflow.sync import SyncSummary
from backread.testing import Lane, MockServer
from documents import ROOT, Block, Document, of_kind

PAGE = Document(ROOT / "docs/how-to/airflow.md")
REFERENCE = Document(ROOT / "docs/reference/airflow.md")
BLOCKS = [block for block in PAGE.blocks if block.kind == "airflow"]
DAGS = {
    dag_id: (block, follows) for block in BLOCKS for dag_id, follows in dag_ids(block.code).items()
}
WAYS = {"scheduled": "scheduled", "by hand": "manual", "by an asset": "asset_triggered"}


@dataclass(frozen=True)
class Pages:
    """The blocks' DAGs at work; each block has a folder in the place of /srv."""

    airflow: Airflow
    folder: Path
    lane: Lane

    def srv(self, block: Block) -> Path:
        return self.folder / block.module

    def runs(self, dag_id: str, way: str) -> list[dict[str, Any]]:
        path = f"/api/v2/dags/{dag_id}/dagRuns?run_type={WAYS[way]}&order_by=-run_after"
        return list(self.airflow.ask("GET", path)["dag_runs"])

    def wait(self, dag_ids: list[str], way: str) -> None:
        """Waits for the end of a run of each that began in this way."""
        for dag_id in dag_ids:
            until(lambda dag_id=dag_id: self.runs(dag_id, way), f"a run of {dag_id} {way}")
            until(
                lambda dag_id=dag_id: self.runs(dag_id, way)[0]["state"] in ("success", "failed"),
                f"an end of {dag_id} {way}",
            )

    def start(self, way: str) -> None:
        """Starts every DAG; those that an asset of their own block schedules come after it."""
        first = [dag_id for dag_id, (_, follows) in DAGS.items() if not follows]
        then = [dag_id for dag_id, (_, follows) in DAGS.items() if follows]
        if way == "scheduled":
            for some in (first, then):
                for dag_id in some:
                    self.airflow.known(dag_id)
                    self.airflow.ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})
                self.wait(some, way)
        elif way == "by hand":
            for dag_id in DAGS:
                self.airflow.trigger(dag_id)
            self.wait([*DAGS], way)
        else:
            found = self.airflow.ask("GET", f"/api/v2/assets?uri_pattern={ASSET}")["assets"]
            self.airflow.ask("POST", "/api/v2/assets/events", {"asset_id": found[0]["id"]})
            self.wait([*DAGS], way)


@pytest.fixture(scope="module")
def pages(
    airflow_home: Path, service: MockServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("srv")
    bundles = []
    for block in BLOCKS:
        dags = folder / block.module / "dags"
        dags.mkdir(parents=True)
        if dag_ids(block.code):
            code = re.sub(r"/srv\b", str(folder / block.module), block.code)
            (dags / "page.py").write_text(started_in_each_way(code))
            bundle = "airflow.dag_processing.bundles.local.LocalDagBundle"
            bundles.append(
                {"name": block.module, "classpath": bundle, "kwargs": {"path": str(dags)}}
            )
    with service.lane() as lane:
        connection = {
            "conn_type": "backread",
            "host": lane.url,
            "password": lane.secret,
            "extra": {"vendor": lane.vendor},
        }
        environment = {
            **os.environ,
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
            "AIRFLOW_CONN_BACKREAD_DEFAULT": json.dumps(connection),
        }
        with running(airflow_home, environment) as airflow:
            started = Pages(airflow, folder, lane)
            for way in WAYS:
                write_to(lane, folder)
                started.start(way)
            yield started


def write_to(lane: Lane, folder: Path) -> None:
    """A message of the user who wrote last, for the sensor."""
    [block] = [block for block in BLOCKS if "NewMessagesSensor" in block.code]
    chats = folder / block.module / "chats"
    if chats.exists():
        latest = "select user_id from conversations order by last_message_at desc limit 1"
        [(user_id,)] = Mirror(chats).sql(latest).fetchall()
        lane.world.add_messages(user_id, 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dag_id", DAGS)
def test_dag(pages, dag_id, way):
    run = pages.runs(dag_id, way)[0]
    assert run["state"] == "success", pages.airflow.logs(dag_id)
    assert (run["logical_date"] is None) == (way != "scheduled")
    tasks = pages.airflow.tasks(dag_id, run["dag_run_id"])
    ended = {task: each["state"] for task, each in tasks.items()}
    # Before the first sync there is no mirror to compare with.
    if "news" in ended and way == "scheduled":
        assert ended.pop("news") == "skipped"
    assert set(ended.values()) == {"success"}, pages.airflow.logs(dag_id)


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if "BackreadSyncOperator" in block.code], ids=str
)
def test_mirror(pages, block):
    chats = pages.srv(block) / "chats"
    modes = [mode for (mode,) in Mirror(chats).sql("select mode from runs order by 1").fetchall()]
    if "full_every" in block.code:
        # Three runs on one day.
        assert modes == ["full", "incremental", "incremental"]
    assert len(modes) == 3
    if "NewMessagesSensor" in block.code:
        assert mirror_holds(chats, pages.lane.world)


@of_kind([block for block in BLOCKS if not dag_ids(block.code)], "airflow")
def test_block(pages, block):
    before = BLOCKS[BLOCKS.index(block) - 1]
    srv = pages.srv(before)
    block.execute(re.sub(r"/srv\b", str(srv), block.code))
    assert [run.number for run in landing.runs(srv / "landed")] == [1, 2, 3]
    held = landing.runs(srv / "landed")[-1].rows
    assert held == len(messages_of(pages.lane.world))


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("key of a sync", SyncSummary),
        ("key of a commit", CommitSummary),
        ("key of the sensor", News),
    ],
)
def test_every_key_of_an_xcom_has_a_row_with_its_type(heading, kind):
    rows = {key: cells[0].replace("\\", "") for key, cells in REFERENCE.table(heading).items()}
    hints = get_type_hints(kind).items()
    types = {key: hint.__name__ if isinstance(hint, type) else str(hint) for key, hint in hints}
    said = {key: text.replace("` or `", " | ").strip("`") for key, text in rows.items()}
    assert said == types


def test_every_argument_of_the_sync_has_a_row():
    kinds = (BackreadSyncOperator, ResumingOperator, ReadingOperator)
    arguments = {
        name
        for kind in kinds
        for name, each in inspect.signature(kind.__init__).parameters.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY
    }
    rows = REFERENCE.table("argument")
    assert {*rows} == arguments
    templates = {
        name for name, cells in rows.items() if cells[-1].rstrip(" |").endswith("template")
    }
    assert templates == set(BackreadSyncOperator.template_fields)
