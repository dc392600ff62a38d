"""The blocks of docs/how-to/spark.md, each alone in a fresh process."""

import re
import subprocess
import sys
from pathlib import Path

import deltalake
import pytest
from clusters import SECONDS

from backread import landing, plan
from documents import ROOT, Document, of_kind

BLOCKS = Document(ROOT / "docs/how-to/spark.md").blocks
DEFAULTS = """\
spark.log.level ERROR
spark.sql.shuffle.partitions 2
spark.ui.enabled false
spark.ui.showConsoleProgress false
"""
"""What an installation may say of all its sessions."""


@of_kind(BLOCKS, "spark")
def test_block_runs_alone(block, environment, service, tmp_path):
    messages = service.world.total_messages
    lands = re.search(r"\bland\(", block.code) is not None
    if "/data/landed" in block.code and not lands:
        with service.client() as client:
            planned = plan(client, shards=2)
            folder = tmp_path / "landed"
            landing.begin(folder, planned)
            files = [landing.land(folder, shard) for shard in planned]
            landing.commit(folder, planned.plan_id, files)

    printed = run(re.sub(r"/data\b", str(tmp_path), block.code), tmp_path, environment)

    if lands:
        number, rows, _, *others = printed.split()
        assert (int(rows), others) == (messages, [rows, number])
    elif ".show()" in block.code:
        # What the cells of the last column count.
        cells = re.findall(r"\|\s*(\d+)\|$", printed, re.MULTILINE)
        assert cells
        assert "only showing" in printed or sum(map(int, cells)) == messages
    elif "merge_into_delta" in block.code:
        table = deltalake.DeltaTable(tmp_path / "messages").to_pyarrow_table()
        assert table.num_rows == messages
    else:
        pytest.fail("nothing shows what this block did")


def run(code: str, folder: Path, environment: dict[str, str]) -> str:
    """Runs a script in a process without any session; gives what it printed."""
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(DEFAULTS)
    (folder / "block.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "block.py"],
        cwd=folder,
        env={**environment, "SPARK_CONF_DIR": str(folder / "conf")},
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
