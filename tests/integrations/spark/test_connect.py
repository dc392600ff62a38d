"""Spark Connect: what a session without executors of its own reads, and what it is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from backread import landing, plan
from conftest import held, rows


@pytest.mark.long
def test_a_connect_session_reads_and_is_told_what_it_cannot(environment, service, tmp_path):
    with service.client() as client:
        expected = held(client)
        for _ in range(2):
            planned = plan(client, shards=2)
            landing.begin(tmp_path / "landing", planned)
            files = [landing.land(tmp_path / "landing", shard) for shard in planned]
            landing.commit(tmp_path / "landing", planned.plan_id, files)
    driver = Path(__file__).with_name("connect_driver.py")
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, str(driver), str(tmp_path)],
            # By this the server takes a port that is free.
            env={**environment, "SPARK_TESTING": "1"},
            stdout=log,
            stderr=log,
            timeout=600,
        )
    assert done.returncode == 0, (tmp_path / "log").read_text()

    found = {name: read(tmp_path, name) for name in ("service", "landed", "newest")}
    assert found == {"service": expected, "landed": expected, "newest": expected}
    assert json.loads((tmp_path / "mistakes.json").read_text()) == []
    refused = json.loads((tmp_path / "refused.json").read_text())
    for name in ("check", "land"):
        assert "Spark Connect, which gives no access" in refused[name]
    assert refused["register"].startswith("there is no option resourse; the options are")


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """What the driver wrote, without the number of the run."""
    found = rows(pyarrow.parquet.read_table(folder / f"{name}.parquet"))
    return [{column: row[column] for column in row if column != "run"} for row in found]
