"""The DAGs of docs/: each has a distinct id.

Airflow shows one of two DAGs with the same id, and nothing of the other. They are run by
tests/integrations/airflow/test_pages.py.
"""

import re
from collections import Counter

import pytest

from documents import IN_CHECKOUT, ROOT, Document

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

DAG_ID = re.compile(r"\bDAG\(\s*\"(\w+)\"|^@dag\(.*\)\ndef (\w+)", re.MULTILINE)


def test_no_dag_hides_another():
    pages = sorted((ROOT / "docs").glob("**/*.md"))
    ids = Counter(
        match[1] or match[2]
        for page in pages
        for block in Document(page).blocks
        if block.kind == "airflow"
        for match in DAG_ID.finditer(block.code)
    )
    assert len(ids) >= 6
    assert set(ids.values()) == {1}, ids
