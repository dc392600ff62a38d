"""What docs/how-to/mirror.md says of the mirror is what the code has."""

from dataclasses import fields
from typing import get_args

import pytest

from documents import ROOT, Document

pytest.importorskip("duckdb")

from backread.mirror import SyncProgress
from backread.mirror.report import Phase

if not (ROOT / "docs").is_dir():
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

PAGE = Document(ROOT / "docs/how-to/mirror.md")


def test_fields_of_the_progress_are_those_of_the_table():
    table = PAGE.table("field")
    assert list(table) == [each.name for each in fields(SyncProgress)]
    assert [phase for phase in get_args(Phase) if f"`{phase}" not in f"`{table['phase'][0]}"] == []
