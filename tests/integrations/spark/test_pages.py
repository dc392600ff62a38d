"""The blocks of docs/how-to/spark.md, each in the session of these tests."""

import re

import clusters
import deltalake
import pytest

from backread import landing, plan
from helpers.doc_pages import ROOT, Document, of_kind

BLOCKS = Document(ROOT / "docs/how-to/spark.md").blocks


@of_kind(BLOCKS, "spark")
def test_block_runs_alone(block, spark, service, tmp_path, capsys):
    messages = service.world.total_messages
    lands = re.search(r"\bland\(", block.code) is not None
    if "/data/landed" in block.code and not lands:
        with service.client() as client:
            planned = plan(client, shards=2)
            folder = tmp_path / "landed"
            landing.begin(folder, planned)
            files = [landing.land(folder, shard) for shard in planned]
            landing.commit(folder, planned.plan_id, files)

    code = re.sub(r"/data\b", str(tmp_path), block.code)
    clusters.patiently(lambda: block.execute(code))
    printed = capsys.readouterr().out

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
