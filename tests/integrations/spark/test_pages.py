"""The blocks of README.md and docs/spark.md that are for Spark, run in their order."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from backread.testing import MockServer
from documents import ROOT, Block, Document, of_kind

BLOCKS = [
    block for page in ("README.md", "docs/spark.md") for block in Document(ROOT / page).blocks
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for /data: the blocks of a page build on one another."""
    return tmp_path_factory.mktemp("data")


@of_kind(BLOCKS, "spark")
def test_block(
    block: Block,
    local: Callable[[], SparkSession],
    service: MockServer,
    data: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    local()
    block.execute(re.sub(r"/data\b", str(data), block.code))
    printed = capfd.readouterr().out
    if "land(" in block.code:
        number, rows, _ = printed.split()[:3]
        assert printed.split()[3:] == [rows, number]
        assert int(rows) == service.world.total_messages
    elif ".show()" in block.code:
        assert "|" in printed


def test_there_are_blocks_of_both_pages() -> None:
    assert {block.page.name for block in BLOCKS if block.kind == "spark"} == {
        "README.md",
        "spark.md",
    }
